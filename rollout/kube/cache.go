// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Cache holds all objects of one kind in memory, and keeps them current with a list and a watch, which resumes by
// itself. Objects that this version cannot decode are left out. Do not modify the objects that it returns. Its methods
// may be called from several goroutines.
type Cache[T any] interface {
	// Run fills the cache and keeps it up to date until ctx ends. changed is called after each change; it must not block.
	// Call it once.
	Run(ctx context.Context, changed func()) error
	// Synced reports whether the cache has every object that existed when it began. Do not run a controller
	// before.
	Synced() bool
	// Check returns an error while the watch is failing: see [NoteWatchErrors]. Use it as a readiness check. Of an
	// informer that its owner runs, it knows only whether it has synced and still runs.
	Check() error
	// List returns all objects, in any order.
	List() []*T
	// Get returns the object of that name; false if there is none, or if it cannot be decoded.
	Get(name string) (*T, bool)
}

// An informerCache is a [Cache].
type informerCache[T any] struct {
	kind     string
	option   string                    // that names the informer of an embedder
	informer informer.Interface        // own, or that of an embedder
	own      cache.SharedIndexInformer // nil where an embedder runs it
	store    cache.Indexer
	watch    *watchState // nil where an embedder runs the informer

	mu        sync.Mutex
	converted map[string]conversion[T] // of an embedder's unstructured objects, by name
}

// A conversion is the typed form of one version of an object.
type conversion[T any] struct {
	of    *unstructured.Unstructured
	typed *T
}

// NewShadowCache returns a cache of NodeShadows, of which each Node has one, to pass to [NewRecords]. Run fills it.
func NewShadowCache(client dynamic.Interface) (Cache[v1alpha1.NodeShadow], error) {
	return newCache[v1alpha1.NodeShadow](client, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource, nil)
}

// NewRolloutCache is like [NewShadowCache], for [NewRollouts].
func NewRolloutCache(client dynamic.Interface) (Cache[v1alpha1.Rollout], error) {
	return newCache[v1alpha1.Rollout](client, v1alpha1.RolloutKind, v1alpha1.RolloutsResource, nil)
}

// NewRevisionCache is like [NewShadowCache], for [NewRollouts].
func NewRevisionCache(client dynamic.Interface) (Cache[v1alpha1.Revision], error) {
	return newCache[v1alpha1.Revision](client, v1alpha1.RevisionKind, v1alpha1.RevisionsResource, nil)
}

// newOwnShadowCache is of the shadow of one node, for its agent: see [AgentShadow].
func newOwnShadowCache(client dynamic.Interface, node string) (Cache[v1alpha1.NodeShadow], error) {
	check := checkerFor("newOwnShadowCache")
	check.Require("client", client, clientRemedy)
	check.Require("node", node, nodeRemedy)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return newCache[v1alpha1.NodeShadow](client, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource, watch.SelectName(node))
}

func newCache[T any](
	client dynamic.Interface, kind string, resource schema.GroupVersionResource, only watch.Selector,
) (Cache[T], error) {
	check := checkerFor("New" + strings.TrimPrefix(kind, "Node") + "Cache")
	check.Require("client", client, clientRemedy)
	if err := check.Err(); err != nil {
		return nil, err
	}
	i := watch.NewInformer(client, resource, metav1.NamespaceAll, cache.Indexers{}, only)
	health := &watchState{resource: resource.Resource, informer: i}
	return &informerCache[T]{kind: kind, informer: i, own: i, store: i.GetIndexer(), watch: health}, nil
}

// cacheOver returns a cache over an informer that its owner runs. It may hold objects of type *T or unstructured ones.
func cacheOver[T any](i informer.Interface, kind, option string) (Cache[T], error) {
	store, err := informer.Indexer(option, i, nil)
	if err != nil {
		return nil, err
	}
	return &informerCache[T]{kind: kind, option: option, informer: i, store: store, converted: map[string]conversion[T]{}}, nil
}

// Run implements [Cache].
func (c *informerCache[T]) Run(ctx context.Context, changed func()) error {
	remedy := "what looks at the objects"
	if err := option.CheckRequired("rollout/kube.Cache.Run", "changed", changed, remedy); err != nil {
		return err
	}
	if c.own != nil {
		if err := errors.Join(c.watch.begin(), c.own.SetTransform(c.decode)); err != nil {
			return fmt.Errorf("watching %ss: %w", c.kind, err)
		}
	}
	handle, err := c.informer.AddEventHandler(handlerOf(changed))
	if err != nil {
		return fmt.Errorf("watching %ss: %w", c.kind, err)
	}
	if c.own != nil {
		c.own.RunWithContext(ctx)
		return nil
	}
	defer func() { _ = c.informer.RemoveEventHandler(handle) }() // of an informer that has stopped there is nothing to remove
	return informer.WatchRunning(ctx, c.option, c.informer)
}

// handlerOf calls changed for each event.
func handlerOf(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}
}

// decode is the transform of the cache's own informer. An object that this version of the package can't decode stays as it is,
// and List leaves it out.
func (c *informerCache[T]) decode(obj any) (any, error) {
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

// Synced implements [Cache].
func (c *informerCache[T]) Synced() bool {
	return c.informer.HasSynced()
}

// Check implements [Cache].
func (c *informerCache[T]) Check() error {
	if c.watch != nil {
		return c.watch.check()
	}
	if err := informer.CheckStopped(c.option, c.informer); err != nil {
		return err
	}
	if !c.Synced() {
		return &informer.Error{Option: c.option, Err: errNotSynced}
	}
	return nil
}

// List implements [Cache].
func (c *informerCache[T]) List() []*T {
	objects := c.store.List()
	c.forgetDeleted(len(objects))
	all := make([]*T, 0, len(objects))
	for _, o := range objects {
		if typed, ok := c.typed(o); ok {
			all = append(all, typed)
		}
	}
	return all
}

// forgetDeleted drops all conversions once most of them are of objects that are gone.
func (c *informerCache[T]) forgetDeleted(live int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.converted) > 2*live+16 {
		clear(c.converted)
	}
}

// Get implements [Cache].
func (c *informerCache[T]) Get(name string) (*T, bool) {
	obj, _, _ := c.store.GetByKey(name) // the store of an informer has no errors
	return c.typed(obj)
}

// typed returns an object of the store in its type. Unstructured objects of an embedder are converted once for each version.
func (c *informerCache[T]) typed(obj any) (*T, bool) {
	if typed, ok := obj.(*T); ok {
		return typed, true
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || c.converted == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.converted[u.GetName()]; known.of == u {
		return known.typed, known.typed != nil
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		typed = nil
	}
	c.converted[u.GetName()] = conversion[T]{u, typed}
	return typed, typed != nil
}
