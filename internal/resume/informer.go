// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Informer returns an informer of the objects of a resource, as unstructured ones, in one namespace or in all, or of those that only selects unless it is nil.
func Informer(client dynamic.Interface, resource schema.GroupVersionResource, namespace string, indexers cache.Indexers, only func(*metav1.ListOptions)) cache.SharedIndexInformer {
	if only == nil {
		only = func(*metav1.ListOptions) {}
	}
	objects := client.Resource(resource).Namespace(namespace)
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			return objects.Watch(ctx, o)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(ListerWatcher(list, client, Most), &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
		Indexers: indexers, ObjectDescription: resource.String(),
	})
}
