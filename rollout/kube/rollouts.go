// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// rolloutFinalizer keeps a Rollout until its slots have ended.
const rolloutFinalizer = "rollout.belay.dev/rollout"

var _ controller.Rollouts = (*domainRollouts)(nil)

// domainRollouts are the Rollouts of one disruption domain, as a controller uses them: [controller.Rollouts].
type domainRollouts struct {
	objects objects
	o       RolloutsOptions
	own     written[*v1alpha1.Rollout]
}

// RolloutsOptions are what [NewRollouts] takes. All but Now are required.
type RolloutsOptions struct {
	// Domain is the name of the domain: spec.domain of its Rollouts.
	Domain string
	// List returns the Rollouts of the cluster, and Revision one Revision by name, both from caches. What they return is not changed.
	List     func() []*v1alpha1.Rollout
	Revision func(name string) (*v1alpha1.Revision, bool)
	// Now is the clock of what is written for people. Nil means time.Now.
	Now func() time.Time
}

// NewRollouts returns the Rollouts of a domain. Those that they have written are seen as they were written, until the cache has come so far.
func NewRollouts(client dynamic.Interface, o RolloutsOptions) (controller.Rollouts, error) {
	check := checkerFor("NewRollouts")
	check.Require("client", client, clientRemedy)
	check.Require("RolloutsOptions.Domain", o.Domain, domainRemedy)
	check.Require("RolloutsOptions.List", o.List, "see NewRolloutCache")
	check.Require("RolloutsOptions.Revision", o.Revision, "see NewRevisionCache")
	if err := check.Err(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &domainRollouts{objects: objects{v1alpha1.RolloutKind, client.Resource(v1alpha1.RolloutsResource)}, o: o}, nil
}

// A rolloutVersion is a Rollout as it was read, and with the answer to a rollback.
type rolloutVersion struct{ read, heeded *v1alpha1.Rollout }

// List implements [controller.Rollouts].
func (s *domainRollouts) List(ctx context.Context) ([]controller.Rollout, error) {
	var all []controller.Rollout
	for _, r := range s.own.over(s.o.List()) {
		if r.Spec.Domain == s.o.Domain {
			all = append(all, s.rolloutOf(r))
		}
	}
	return all, ctx.Err()
}

// Asked implements [controller.Rollouts]. It goes by the generations of the Rollouts that List returns.
func (s *domainRollouts) Asked() string {
	var all []string
	for _, r := range s.o.List() { // in any order
		if r.Spec.Domain == s.o.Domain {
			all = append(all, string(r.UID)+"/"+strconv.FormatInt(r.Generation, 10))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *domainRollouts) rolloutOf(r *v1alpha1.Rollout) controller.Rollout {
	v := rolloutVersion{read: r, heeded: v1alpha1.HeedRollback(r, s.o.Revision)}
	seen := controller.Rollout{Name: r.Name, Created: r.CreationTimestamp.Time, Deleting: r.DeletionTimestamp != nil, Object: r, Version: v}
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		seen.Stalled = c.Reason
	}
	var invalid, unread error
	seen.Policy, invalid = v1alpha1.PolicyOf(v.heeded, s.o.Revision)
	seen.Policy.UID = string(r.UID)
	if seen.Progress, unread = v1alpha1.ProgressOf(v.heeded.Status); unread != nil {
		seen.Policy.Verb = rollout.Verb{} // carrying it out would overwrite what can't be read
	}
	seen.Invalid = errors.Join(invalid, unread)
	return seen
}

// Store implements [controller.Rollouts]. The first one puts rolloutFinalizer on the Rollout.
func (s *domainRollouts) Store(ctx context.Context, read controller.Rollout, d rollout.Decisions) (controller.Rollout, time.Duration, error) {
	v, ok := read.Version.(rolloutVersion)
	if !ok {
		return read, 0, fmt.Errorf("writing %s %q: its version is not of these Rollouts", s.objects.kind, read.Name)
	}
	r := v.read
	if r.DeletionTimestamp == nil && !slices.Contains(r.Finalizers, rolloutFinalizer) {
		var err error
		if r, err = s.setFinalizer(ctx, r, true); err != nil {
			return read, 0, err
		}
	}
	status, after := s.status(v.heeded, read, d)
	is, err := fields(&r.Status)
	if err != nil {
		return read, 0, fmt.Errorf("writing %s %q: %w", s.objects.kind, read.Name, err)
	}
	want, err := fields(&status)
	if err != nil {
		return read, 0, fmt.Errorf("writing %s %q: %w", s.objects.kind, read.Name, err)
	}
	if change := difference(is, want); len(change) > 0 {
		if r, err = s.patch(ctx, r, map[string]any{"status": change}, "status"); err != nil {
			return read, 0, err
		}
	}
	return s.rolloutOf(r), after, nil
}

func (s *domainRollouts) status(r *v1alpha1.Rollout, read controller.Rollout, d rollout.Decisions) (v1alpha1.RolloutStatus, time.Duration) {
	switch d.Reason {
	case controller.ReasonInvalid:
	case controller.ReasonStopped:
		return v1alpha1.StoppedStatus(r, d, s.o.Now())
	default:
		return v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: read.Policy, Decisions: d}, s.o.Now())
	}
	err := read.Invalid
	if err == nil {
		err = errors.New(d.Message)
	}
	return v1alpha1.InvalidStatus(r, err, s.o.Now()), 0
}

// Finish implements [controller.Rollouts].
func (s *domainRollouts) Finish(ctx context.Context, read controller.Rollout) error {
	v, ok := read.Version.(rolloutVersion)
	if !ok {
		return fmt.Errorf("writing %s %q: its version is not of these Rollouts", s.objects.kind, read.Name)
	}
	if is := v.read.Finalizers; len(is) > 0 && !slices.Contains(is, rolloutFinalizer) {
		return nil // others hold it
	}
	_, err := s.setFinalizer(ctx, v.read, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Gone implements [controller.Rollouts].
func (s *domainRollouts) Gone(ctx context.Context, uid string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := s.objects.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("listing %ss: %w", s.objects.kind, err)
	}
	return !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return string(u.GetUID()) == uid }), nil
}

// setFinalizer adds rolloutFinalizer to the version that was read, or removes it. The finalizers of others are those
// that the API server has: the informer of an embedder may have a transform that drops them.
func (s *domainRollouts) setFinalizer(ctx context.Context, r *v1alpha1.Rollout, there bool) (*v1alpha1.Rollout, error) {
	is, err := s.objects.readFinalizers(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(slices.Clone(is), func(f string) bool { return f == rolloutFinalizer })
	if there {
		all = append(all, rolloutFinalizer)
	}
	if len(all) == len(is) {
		return r, nil
	}
	return s.patch(ctx, r, map[string]any{"metadata": map[string]any{"finalizers": all}})
}

// patch sends a merge patch of the version that was read.
func (s *domainRollouts) patch(ctx context.Context, r *v1alpha1.Rollout, patch map[string]any, subresource ...string) (*v1alpha1.Rollout, error) {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"], metadata["uid"] = r.ResourceVersion, string(r.UID)
	patch["metadata"] = metadata
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", s.objects.kind, r.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	u, err := s.objects.client.Patch(ctx, r.Name, types.MergePatchType, body, options, subresource...)
	if err := s.objects.written("writing", r.Name, err); err != nil {
		return nil, err
	}
	var next v1alpha1.Rollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &next); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", s.objects.kind, r.Name, err)
	}
	s.own.wrote(&next)
	return &next, nil
}
