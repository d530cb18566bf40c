// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/resume"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Cache keeps all objects of one kind in memory, by one list and one watch, which goes on by itself. What it returns must not be changed. Its methods may be called at the
// same time.
type Cache[T any] struct {
	kind     string
	informer cache.SharedIndexInformer
	watch    *Watch
}

// NewShadowCache returns a cache that is empty until [Cache.Run]: for [NewRecords].
func NewShadowCache(client dynamic.Interface) *Cache[v1alpha1.NodeShadow] {
	return newCache[v1alpha1.NodeShadow](client, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource, nil)
}

// NewRolloutCache is like [NewShadowCache], for [NewRollouts].
func NewRolloutCache(client dynamic.Interface) *Cache[v1alpha1.Rollout] {
	return newCache[v1alpha1.Rollout](client, v1alpha1.RolloutKind, v1alpha1.RolloutsResource, nil)
}

// NewRevisionCache is like [NewShadowCache], for [NewRollouts].
func NewRevisionCache(client dynamic.Interface) *Cache[v1alpha1.Revision] {
	return newCache[v1alpha1.Revision](client, v1alpha1.RevisionKind, v1alpha1.RevisionsResource, nil)
}

// NewOwnShadowCache is of the shadow of one node, for its agent: see [AgentShadow.See].
func NewOwnShadowCache(client dynamic.Interface, node string) *Cache[v1alpha1.NodeShadow] {
	return newCache[v1alpha1.NodeShadow](client, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource, named(node))
}

func newCache[T any](client dynamic.Interface, kind string, resource schema.GroupVersionResource, only func(*metav1.ListOptions)) *Cache[T] {
	informer := resume.Informer(client, resource, metav1.NamespaceAll, cache.Indexers{}, only)
	return &Cache[T]{kind, informer, &Watch{resource: resource.Resource, informer: informer}}
}

// named selects the one object of that name.
func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = metav1.ObjectNameField + "=" + name }
}

// Run fills the cache and keeps it up to date until ctx ends. changed is called after each change; it must not block. Call it once.
func (c *Cache[T]) Run(ctx context.Context, changed func()) error {
	if err := errors.Join(c.watch.begin(), c.informer.SetTransform(c.read)); err != nil {
		return fmt.Errorf("watching %ss: %w", c.kind, err)
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watching %ss: %w", c.kind, err)
	}
	c.informer.RunWithContext(ctx)
	return nil
}

// read is the transform of the informer. What this version of the package can't read stays as it is, and is left out of List.
func (c *Cache[T]) read(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	u.SetManagedFields(nil)
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
		return obj, nil //nolint:nilerr // see above
	}
	return &typed, nil
}

// Synced reports whether the cache has everything that there was when it began. A controller must not pass before.
func (c *Cache[T]) Synced() bool { return c.informer.HasSynced() }

// Check returns nil while the cache is up to date as far as anybody knows: [Watch.Check]. A process is not ready while it is not.
func (c *Cache[T]) Check() error { return c.watch.Check() }

// List returns all objects, in any order.
func (c *Cache[T]) List() []*T {
	objects := c.informer.GetStore().List()
	all := make([]*T, 0, len(objects))
	for _, o := range objects {
		if typed, ok := o.(*T); ok {
			all = append(all, typed)
		}
	}
	return all
}

// Get returns the object of that name.
func (c *Cache[T]) Get(name string) (*T, bool) {
	obj, _, _ := c.informer.GetStore().GetByKey(name) // the store of an informer has no errors
	typed, ok := obj.(*T)
	return typed, ok
}
