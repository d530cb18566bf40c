// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// A Selector narrows what a list and a watch return.
type Selector = func(*metav1.ListOptions)

// SelectName selects the one object of that name. A role that is restricted to the name is enough for its list and watch.
func SelectName(name string) Selector { return SelectField(metav1.ObjectNameField, name) }

// SelectField selects the objects whose field has that value.
func SelectField(field, value string) Selector {
	only := fields.OneTermEqualSelector(field, value).String()
	return func(o *metav1.ListOptions) { o.FieldSelector = only }
}

// A Client lists and watches objects: the typed and dynamic resource clients of client-go do.
type Client[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// NewListWatch returns a list and a watch of what the selector selects, or of everything if it is nil.
func NewListWatch[L runtime.Object](client Client[L], selector Selector) *cache.ListWatch {
	if selector == nil {
		selector = func(*metav1.ListOptions) {}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			selector(&o)
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			selector(&o)
			return client.Watch(ctx, o)
		},
	}
}

// NewInformer returns an informer of the unstructured objects of a resource, in one namespace or in all. A selector that is not
// nil narrows them.
func NewInformer(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string, indexers cache.Indexers, selector Selector,
) cache.SharedIndexInformer {
	list := NewListWatch[*unstructured.UnstructuredList](client.Resource(resource).Namespace(namespace), selector)
	return cache.NewSharedIndexInformerWithOptions(Resume(list, client, MaxPause), &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
		Indexers: indexers, ObjectDescription: resource.String(),
	})
}

// NewTypedInformer returns an informer of the objects that a typed client lists. They are of the type of example.
func NewTypedInformer[L runtime.Object](
	client Client[L], example runtime.Object, selector Selector,
) cache.SharedIndexInformer {
	list := Resume(NewListWatch(client, selector), client, MaxPause)
	return cache.NewSharedIndexInformer(list, example, 0, cache.Indexers{})
}
