// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
)

// A Client reads and writes NodeMaintenance objects. Each call but Watch has a deadline of its own.
type Client interface {
	// Get reads an object consistently. One that is not there is a NotFound error.
	Get(ctx context.Context, name string) (*v1alpha1.NodeMaintenance, error)
	// List reads all objects consistently.
	List(ctx context.Context) ([]v1alpha1.NodeMaintenance, error)
	// SetFinalizers replaces the finalizers of exactly this version of the object. Another version is a Conflict error.
	SetFinalizers(ctx context.Context, o *v1alpha1.NodeMaintenance, finalizers []string) error
	// SetStatus replaces the status of the object with that name and UID.
	SetStatus(ctx context.Context, o *v1alpha1.NodeMaintenance) error
	// Watch calls changed with the name of each object that is there, and of each that changes, until ctx ends. changed
	// must not block.
	Watch(ctx context.Context, changed func(name string)) error
}

// callTime bounds a request.
const callTime = 10 * time.Second

// fieldManager owns the fields that are written.
const fieldManager = "belay-node-maintenance"

// A dynamicClient is a [Client] of an API server.
type dynamicClient struct{ client dynamic.Interface }

// NewClient returns a client of an API server. An error says that client is missing.
func NewClient(client dynamic.Interface) (Client, error) {
	const remedy = "see dynamic.NewForConfig"
	if err := option.CheckRequired("drain/maintenance.NewClient", "client", client, remedy); err != nil {
		return nil, err
	}
	return dynamicClient{client}, nil
}

func (c dynamicClient) resourceClient() dynamic.NamespaceableResourceInterface {
	return c.client.Resource(v1alpha1.NodeMaintenancesResource)
}

// Get is as in [Client].
func (c dynamicClient) Get(ctx context.Context, name string) (*v1alpha1.NodeMaintenance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := c.resourceClient().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return decodeObject(u)
}

// decodeObject goes by way of JSON: the durations of a policy are strings, which its own decoder reads.
func decodeObject(u *unstructured.Unstructured) (*v1alpha1.NodeMaintenance, error) {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := &v1alpha1.NodeMaintenance{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, &decodeError{object: withoutSpec(u), err: err}
	}
	return o, nil
}

// A decodeError is an object whose spec this version cannot read. object has the rest of it.
type decodeError struct {
	object *v1alpha1.NodeMaintenance
	err    error
}

// Error says which object, and why.
func (e *decodeError) Error() string {
	return fmt.Sprintf("reading NodeMaintenance %q: %v", e.object.Name, e.err)
}

// Unwrap returns the cause.
func (e *decodeError) Unwrap() error { return e.err }

// withoutSpec is the part of an object that needs no decoder of policies: it can be given a status, and be released.
func withoutSpec(u *unstructured.Unstructured) *v1alpha1.NodeMaintenance {
	o := &v1alpha1.NodeMaintenance{}
	rest := map[string]any{"metadata": u.Object["metadata"], "status": u.Object["status"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, o); err != nil {
		o.Name, o.UID, o.Generation = u.GetName(), u.GetUID(), u.GetGeneration()
		o.Finalizers, o.DeletionTimestamp = u.GetFinalizers(), u.GetDeletionTimestamp()
		o.ResourceVersion = u.GetResourceVersion()
	}
	return o
}

// List is as in [Client]. Of an object that this version cannot read, the metadata and the status are returned.
func (c dynamicClient) List(ctx context.Context) ([]v1alpha1.NodeMaintenance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := c.resourceClient().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make([]v1alpha1.NodeMaintenance, len(list.Items))
	for i := range list.Items {
		o, err := decodeObject(&list.Items[i])
		if err != nil {
			o = withoutSpec(&list.Items[i])
		}
		all[i] = *o
	}
	return all, nil
}

// SetFinalizers is as in [Client].
func (c dynamicClient) SetFinalizers(ctx context.Context, o *v1alpha1.NodeMaintenance, finalizers []string) error {
	if err := option.CheckRequired("drain/maintenance.Client.SetFinalizers", "o", o, "see Get"); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "resourceVersion": o.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return err
	}
	return c.patchObject(ctx, o.Name, types.MergePatchType, patch)
}

// SetStatus is as in [Client].
func (c dynamicClient) SetStatus(ctx context.Context, o *v1alpha1.NodeMaintenance) error {
	if err := option.CheckRequired("drain/maintenance.Client.SetStatus", "o", o, "see Get"); err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.UID}, {"op": "add", "path": "/status", "value": o.Status},
	})
	if err != nil {
		return err
	}
	return c.patchObject(ctx, o.Name, types.JSONPatchType, patch, "status")
}

func (c dynamicClient) patchObject(
	ctx context.Context, name string, as types.PatchType, text []byte, sub ...string,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := c.resourceClient().Patch(ctx, name, as, text, metav1.PatchOptions{FieldManager: fieldManager}, sub...)
	return err
}

// isStatusAlone reports whether two states of an object differ in no more than what the reconciler itself writes: a
// status that says another thing each time would call the next pass at once.
func isStatusAlone(old, obj any) bool {
	a, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	b, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) && a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp())
}

// Watch is as in [Client].
func (c dynamicClient) Watch(ctx context.Context, changed func(name string)) error {
	if err := option.CheckRequired("drain/maintenance.Client.Watch", "changed", changed, "give a function"); err != nil {
		return err
	}
	informer := watch.NewInformer(c.client, v1alpha1.NodeMaintenancesResource, metav1.NamespaceAll, cache.Indexers{}, nil)
	tell := func(obj any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			changed(name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell, UpdateFunc: func(old, obj any) {
			if !isStatusAlone(old, obj) {
				tell(obj)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching NodeMaintenances: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}
