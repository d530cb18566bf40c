// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// FieldManager is the name under which this package writes.
const FieldManager = "kubectl-belay"

const (
	// again is the pause before a watch that has ended is begun anew, watchTime how long one is believed that says nothing.
	again     = 500 * time.Millisecond
	watchTime = 2 * time.Minute
)

// Ask asks for a verb on the Rollout as it was read, by a patch that is taken only if nobody has asked for anything since. The ID of its request must not
// have been used before.
func (c *Cluster) Ask(ctx context.Context, r *v1alpha1.Rollout, v v1alpha1.Verb) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	for version := r.ResourceVersion; ; {
		err := c.patch(ctx, r, version, v)
		switch {
		case err == nil:
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("you may not ask for %s, which takes the ClusterRole belay-operator; nothing was asked for: %w", v.Do, err)
		case !apierrors.IsConflict(err):
			return fmt.Errorf("asking rollout %q for %s: %w", r.Name, v.Do, err)
		}
		if version, err = c.unasked(ctx, r); err != nil {
			return err
		}
	}
}

// patch is one try to ask, for the version of the Rollout that is given.
func (c *Cluster) patch(ctx context.Context, r *v1alpha1.Rollout, version string, v v1alpha1.Verb) error {
	verb := map[string]any{"request": v.Request, "do": v.Do, "node": nil, "number": nil} // what the verb before had goes
	if v.Node != "" {
		verb["node"] = v.Node
	}
	if v.Number > 0 {
		verb["number"] = v.Number
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.UID, "resourceVersion": version}, "spec": map[string]any{"verb": verb},
	})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict}
	_, err = c.client.Resource(v1alpha1.RolloutsResource).Patch(ctx, r.Name, types.MergePatchType, patch, options)
	return err
}

// unasked is the version that a Rollout has by now, if it is the one that was read, and has the same verb.
func (c *Cluster) unasked(ctx context.Context, r *v1alpha1.Rollout) (version string, err error) {
	u, err := c.get(ctx, v1alpha1.RolloutsResource, r.Name)
	if err != nil {
		return "", fmt.Errorf("reading rollout %q again; nothing was asked for: %w", r.Name, err)
	}
	now, err := rolloutOf(u)
	switch {
	case err != nil:
		return "", err
	case now.UID != r.UID:
		return "", fmt.Errorf("rollout %q is not the one any more that was looked at: it was deleted and created again; nothing was asked for", r.Name)
	case equality.Semantic.DeepEqual(now.Spec.Verb, r.Spec.Verb):
		return now.ResourceVersion, nil
	case now.Spec.Verb == nil:
		return "", fmt.Errorf("what was asked of rollout %q before was taken back in the meantime; nothing was asked for: look, and ask again", r.Name)
	}
	return "", fmt.Errorf("somebody else has asked rollout %q for %s (%s) in the meantime; nothing was asked for: look, and ask again", r.Name,
		now.Spec.Verb.Do, now.Spec.Verb.Request)
}

// get reads an object.
func (c *Cluster) get(ctx context.Context, resource schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	return c.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
}

// Follow shows each version of a Rollout, as far as they are seen, until show says that this is enough, or ctx ends. That the API server is
// away for a while is no error: away hears of each try that fails.
func (c *Cluster) Follow(ctx context.Context, name string, show func(*v1alpha1.Rollout) (enough bool), away func(error)) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
		enough, err := c.look(ctx, name, show)
		if enough || err != nil && lasting(err) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			away(err)
		}
		pause.Reset(again)
	}
}

// lasting reports whether an error is one that no waiting will mend.
func lasting(err error) bool {
	var gone *goneError
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || errors.As(err, &gone)
}

// A goneError says that a Rollout was deleted.
type goneError struct{ name string }

func (e *goneError) Error() string { return fmt.Sprintf("rollout %q was deleted", e.name) }

// look reads the Rollout, and watches it from there.
func (c *Cluster) look(ctx context.Context, name string, show func(*v1alpha1.Rollout) bool) (enough bool, err error) {
	u, err := c.get(ctx, v1alpha1.RolloutsResource, name)
	if err != nil {
		return false, fmt.Errorf("reading rollout %q: %w", name, err)
	}
	r, err := rolloutOf(u)
	if err != nil || show(r) {
		return true, err
	}
	ctx, cancel := context.WithTimeout(ctx, watchTime) // one whose answer never comes is not waited for, either
	defer cancel()
	w, err := c.client.Resource(v1alpha1.RolloutsResource).Watch(ctx, metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + name, ResourceVersion: u.GetResourceVersion()})
	if err != nil {
		return false, fmt.Errorf("watching rollout %q: %w", name, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Deleted:
			return false, &goneError{name}
		case event.Type == watch.Error, !ok:
			return false, nil
		}
		if r, err = rolloutOf(u); err != nil || show(r) {
			return true, err
		}
	}
	return false, nil
}

func rolloutOf(u *unstructured.Unstructured) (*v1alpha1.Rollout, error) {
	r := &v1alpha1.Rollout{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		return nil, fmt.Errorf("reading rollout %q: %w", u.GetName(), err)
	}
	return r, nil
}
