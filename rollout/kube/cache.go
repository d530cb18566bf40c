// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A ShadowCache keeps all NodeShadows of a cluster in memory, by one list and one watch: for [NewRecords].
type ShadowCache struct {
	informer cache.SharedIndexInformer
}

// NewShadowCache returns a cache that is empty until [ShadowCache.Run].
func NewShadowCache(client dynamic.Interface) *ShadowCache {
	i := dynamicinformer.NewFilteredDynamicInformer(client, v1alpha1.NodeShadowsResource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	return &ShadowCache{informer: i}
}

// Run fills the cache and keeps it up to date until ctx ends. changed is called after each change; it must not block. Call it once.
func (c *ShadowCache) Run(ctx context.Context, changed func()) error {
	// What an older version of this package can't read stays as it is, and is left out of List.
	err := c.informer.SetTransform(func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		sh, err := shadowIn(u)
		if err != nil {
			return obj, nil //nolint:nilerr // see above
		}
		sh.ManagedFields = nil
		return sh, nil
	})
	if err != nil {
		return fmt.Errorf("watching %ss: %w", v1alpha1.NodeShadowKind, err)
	}
	_, err = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watching %ss: %w", v1alpha1.NodeShadowKind, err)
	}
	c.informer.RunWithContext(ctx)
	return nil
}

// Synced reports whether the cache has everything that there was when it began. A controller must not pass before.
func (c *ShadowCache) Synced() bool { return c.informer.HasSynced() }

// List returns all shadows. They must not be changed.
func (c *ShadowCache) List() []*v1alpha1.NodeShadow {
	objects := c.informer.GetStore().List()
	all := make([]*v1alpha1.NodeShadow, 0, len(objects))
	for _, o := range objects {
		if sh, ok := o.(*v1alpha1.NodeShadow); ok {
			all = append(all, sh)
		}
	}
	return all
}
