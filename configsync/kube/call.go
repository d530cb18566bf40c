// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync"
)

// The resources of the core group that are used.
var (
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// target is one object on the API server.
type target struct {
	kind            string
	namespace, name string
	resource        schema.GroupVersionResource
}

// String names the object in errors.
func (t target) String() string {
	if t.namespace == "" {
		return fmt.Sprintf("%s %q", t.kind, t.name)
	}
	return fmt.Sprintf("%s %q", t.kind, t.namespace+"/"+t.name)
}

// at returns the client of the target's resource.
func (c caller) at(t target) dynamic.ResourceInterface {
	if t.namespace == "" {
		return c.client.Resource(t.resource)
	}
	return c.client.Resource(t.resource).Namespace(t.namespace)
}

// get reads the target from etcd, not from a cache of the API server.
func (c caller) get(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	u, err := c.at(t).Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", t, Classified(err))
	}
	klog.FromContext(ctx).V(4).Info("Got object", "kind", t.kind, "object", klog.KRef(t.namespace, t.name),
		"uid", u.GetUID(), "resourceVersion", u.GetResourceVersion())
	return u, nil
}

// getSeen is get for an object that may have been seen just now.
func (c caller) getSeen(ctx context.Context, t target, s *seen) (*unstructured.Unstructured, error) {
	if u := s.fresh(); u != nil {
		return u, nil
	}
	asked := s.asking()
	u, err := c.get(ctx, t)
	if err != nil {
		s.forget()
		return nil, err
	}
	s.read(u, asked)
	return u, nil
}

// attempts is how often a report is tried that meets another writer.
const attempts = 4

// unhurried tries f again while another writer comes in between its read and its write.
func unhurried(ctx context.Context, f func(ctx context.Context) error) error {
	for n := 1; ; n++ {
		if err := f(ctx); n == attempts || ctx.Err() != nil || !apierrors.IsConflict(err) {
			return err
		}
	}
}

// only is what the target must still be for a write: the object of that UID, and of that version unless it is empty.
type only struct{ uid, version string }

// asRead is the target as it was read.
func asRead(u *unstructured.Unstructured) only {
	return only{string(u.GetUID()), u.GetResourceVersion()}
}

// applyStatus writes body, a status, to the target by server-side apply, if the target still is what it must be.
func (c caller) applyStatus(ctx context.Context, t target, o only, body map[string]any) (*unstructured.Unstructured, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	meta := map[string]any{"name": t.name, "uid": o.uid}
	if o.version != "" {
		meta["resourceVersion"] = o.version
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": t.resource.GroupVersion().String(), "kind": t.kind, "metadata": meta, "status": body,
	}}
	got, err := c.at(t).ApplyStatus(ctx, t.name, u, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying the status of %s: %w", t, refused(err))
	}
	klog.FromContext(ctx).V(2).Info("Applied status", "kind", t.kind, "object", klog.KRef(t.namespace, t.name))
	return got, nil
}

// Classified says what an error of an API server's client means for a config: it wraps [configsync.ErrMissing], [configsync.ErrForbidden] or
// [configsync.ErrUnreachable], and err. That the node is not known to the server (401) says nothing about an object, so it counts as unreachable, like
// everything that isn't an answer about it. It is for a [configsync.Finder] that asks an API server. Nil stays nil.
func Classified(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && notServed(err):
		return fmt.Errorf("%w: the API server doesn't serve this kind; install its CustomResourceDefinition: %w", configsync.ErrUnreachable, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", configsync.ErrMissing, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", configsync.ErrForbidden, err)
	default:
		return fmt.Errorf("%w: %w", configsync.ErrUnreachable, err)
	}
}

// refused is Classified for a write, to which the API server may also answer that it doesn't like it.
func refused(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) {
		return err
	}
	return Classified(err)
}

// notServed tells a path that the API server doesn't know from an object that it doesn't have.
func notServed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
