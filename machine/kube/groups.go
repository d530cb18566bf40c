// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// Groups are sets, deployments and health checks, with their machines: what [controller.NewGroups] takes. [NewGroups]
// makes it; do not embed it.
type Groups interface {
	controller.Groups
	// Run watches until ctx ends, or returns why it can't. changed is called with the namespace of what has changed; it
	// must not block. Call it once; [RunGroups] does.
	Run(ctx context.Context, changed func(namespace string)) error
	// Synced reports whether everything is there that there was when Run began.
	Synced() bool

	asStore() *groupStore
}

// A groupStore is a [Groups].
type groupStore struct {
	client      dynamic.Interface
	machines    *machineStore
	deployments kindOf[v1alpha1.MachineDeployment, machine.Deployment]
	sets        kindOf[v1alpha1.MachineSet, machine.Set]
	checks      kindOf[v1alpha1.MachineHealthCheck, machine.HealthCheck]
}

func (g *groupStore) asStore() *groupStore { return g }

// A kindOf is the watch of one kind, and how its objects are read.
type kindOf[O, C any] struct {
	kind     string
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	core     func(*O) (C, error)
	selector func(*O) *v1alpha1.MachineSelector // nil: none that goes beyond labels
}

// NewGroups returns those of a namespace, which is that of machines. They are empty until Run. An error names what is
// missing.
func NewGroups(client dynamic.Interface, namespace string, machines Machines) (Groups, error) {
	check := option.For("machine/kube.NewGroups", nil)
	check.Require("client", client, "see dynamic.NewForConfig")
	check.Require("machines", machines, "see NewMachines")
	if err := check.Err(); err != nil {
		return nil, err
	}
	informer := func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		by := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return watch.NewInformer(client, r, namespace, by, nil)
	}
	return &groupStore{
		client: client, machines: machines.asStore(),
		deployments: kindOf[v1alpha1.MachineDeployment, machine.Deployment]{v1alpha1.MachineDeploymentKind, v1alpha1.MachineDeploymentsResource,
			informer(v1alpha1.MachineDeploymentsResource), (*v1alpha1.MachineDeployment).Core, nil},
		sets: kindOf[v1alpha1.MachineSet, machine.Set]{v1alpha1.MachineSetKind, v1alpha1.MachineSetsResource,
			informer(v1alpha1.MachineSetsResource), (*v1alpha1.MachineSet).Core,
			func(o *v1alpha1.MachineSet) *v1alpha1.MachineSelector { return &o.Spec.Selector }},
		checks: kindOf[v1alpha1.MachineHealthCheck, machine.HealthCheck]{v1alpha1.MachineHealthCheckKind, v1alpha1.MachineHealthChecksResource,
			informer(v1alpha1.MachineHealthChecksResource), (*v1alpha1.MachineHealthCheck).Core,
			func(o *v1alpha1.MachineHealthCheck) *v1alpha1.MachineSelector { return &o.Spec.Selector }},
	}, nil
}

// Run watches until ctx ends, or returns why it can't. changed is called with the namespace of what has changed; it must not block. Call it once.
func (g *groupStore) Run(ctx context.Context, changed func(namespace string)) error {
	if err := option.CheckRequired(
		"machine/kube.Groups.Run", "changed", changed, "what reconciles a namespace",
	); err != nil {
		return err
	}
	tell := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(metav1.Object); ok {
			changed(o.GetNamespace())
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell}
	informers := map[cache.SharedIndexInformer]cache.TransformFunc{
		g.deployments.informer: read[v1alpha1.MachineDeployment], g.sets.informer: read[v1alpha1.MachineSet], g.checks.informer: read[v1alpha1.MachineHealthCheck],
	}
	for i, transform := range informers {
		err := i.SetTransform(transform)
		if err == nil {
			_, err = i.AddEventHandler(handler)
		}
		if err != nil {
			return fmt.Errorf("watch groups of machines: %w", err)
		}
	}
	var wg sync.WaitGroup
	for i := range informers {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	wg.Wait()
	return nil
}

// Synced reports whether everything is there that there was when Run began.
func (g *groupStore) Synced() bool {
	return g.deployments.informer.HasSynced() && g.sets.informer.HasSynced() && g.checks.informer.HasSynced()
}

// Read implements [controller.Groups].
func (g *groupStore) Read(ctx context.Context, namespace string, live bool) (group controller.Group, err error) {
	group.Matches = map[string]func(map[string]string) bool{}
	if group.Sets, err = g.sets.list(ctx, g.client, namespace, live, group.Matches); err != nil {
		return group, err
	}
	if group.Deployments, err = g.deployments.list(ctx, g.client, namespace, live, nil); err != nil {
		return group, err
	}
	if group.Checks, err = g.checks.list(ctx, g.client, namespace, live, group.Matches); err != nil {
		return group, err
	}
	group.Machines, err = g.machines.within(ctx, namespace, live)
	return group, err
}

// list is from the cache, or from the API server. What can't be read is an error: nothing is decided on a part.
func (k kindOf[O, C]) list(ctx context.Context, client dynamic.Interface, namespace string, live bool, matches map[string]func(map[string]string) bool) ([]C, error) {
	objects, err := k.objects(ctx, client, namespace, live)
	if err != nil {
		return nil, err
	}
	var all []C
	for _, o := range objects {
		c, err := k.core(o)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		meta, ok := any(o).(metav1.Object)
		if k.selector == nil || !ok {
			continue
		}
		match, err := k.selector(o).Matches()
		if err != nil {
			return nil, fmt.Errorf("%s %q: spec.selector: %w", k.kind, meta.GetName(), err)
		}
		matches[string(meta.GetUID())] = match
	}
	return all, nil
}

func (k kindOf[O, C]) objects(ctx context.Context, client dynamic.Interface, namespace string, live bool) (objects []*O, err error) {
	if !live {
		found, err := k.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
		if err != nil {
			return nil, fmt.Errorf("look for %ss in %q: %w", k.kind, namespace, err)
		}
		for _, obj := range found {
			if o, ok := obj.(*O); ok {
				objects = append(objects, o)
			}
		}
		return objects, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	all, err := client.Resource(k.resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %ss in %q: %w", k.kind, namespace, err)
	}
	for _, u := range all.Items {
		o := new(O)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return nil, fmt.Errorf("%s %q: %w", k.kind, u.GetName(), err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// within are the machines of a namespace.
func (s *machineStore) within(ctx context.Context, namespace string, live bool) ([]machine.Machine, error) {
	if !live {
		var mine []machine.Machine
		for _, m := range s.readable() {
			if m.Namespace == namespace {
				mine = append(mine, m)
			}
		}
		return mine, nil
	}
	k := kindOf[v1alpha1.Machine, machine.Machine]{v1alpha1.MachineKind, v1alpha1.MachinesResource, s.informer, (*v1alpha1.Machine).Core, nil}
	return k.list(ctx, s.client, namespace, true, nil)
}

// written is the answer to a write of a group.
func written(kind string, key machine.Key, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("write %s %q: %w", kind, key, controller.ErrConflict)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("write %s %q: %w", kind, key, fs.ErrNotExist)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("write %s %q: %w", kind, key, fs.ErrExist)
	}
	return fmt.Errorf("write %s %q: %w", kind, key, err)
}

// raw reads an object in the version that was read, to be written: with all that it has.
func (k kindOf[O, C]) raw(ctx context.Context, client dynamic.Interface, key machine.Key, version string) (*unstructured.Unstructured, error) {
	u, err := client.Resource(k.resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, written(k.kind, key, err)
	}
	if u.GetResourceVersion() != version {
		return nil, fmt.Errorf("%s %q is at version %s, and %s was read: %w", k.kind, key, u.GetResourceVersion(), version, controller.ErrConflict)
	}
	return u, nil
}

// fetch is raw, as far as this version knows it.
func (k kindOf[O, C]) fetch(ctx context.Context, client dynamic.Interface, key machine.Key, version string) (*O, error) {
	u, err := k.raw(ctx, client, key, version)
	if err != nil {
		return nil, err
	}
	o := new(O)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("%s %q: %w", k.kind, key, err)
	}
	return o, nil
}

// base is the object in the version that was read, from the cache where it has that one.
func (k kindOf[O, C]) base(ctx context.Context, client dynamic.Interface, key machine.Key, version string) (*O, error) {
	obj, _, _ := k.informer.GetStore().GetByKey(cacheKey(key)) // the store of an informer has no errors
	o, ok := obj.(*O)
	if meta, is := obj.(metav1.Object); !ok || !is || meta.GetResourceVersion() != version {
		return k.fetch(ctx, client, key, version)
	}
	next, err := copied(o)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", k.kind, key, err)
	}
	return next, nil
}

// copied is a deep copy.
func copied[O any](o *O) (*O, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	next := new(O)
	return next, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, next)
}

func (k kindOf[O, C]) create(ctx context.Context, client dynamic.Interface, key machine.Key, o *O) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("%s %q: %w", k.kind, key, err)
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.kind))
	_, err = client.Resource(k.resource).Namespace(key.Namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	return written(k.kind, key, err)
}

func (k kindOf[O, C]) delete(ctx context.Context, client dynamic.Interface, c machine.Choice) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	uid := types.UID(c.UID)
	err := client.Resource(k.resource).Namespace(c.Namespace).Delete(ctx, c.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &c.Version},
	})
	return written(k.kind, c.Key, err)
}

// patch is a merge patch of the version that was chosen.
func (k kindOf[O, C]) patch(ctx context.Context, client dynamic.Interface, c machine.Choice, meta map[string]any) (machine.Choice, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	meta["uid"], meta["resourceVersion"] = c.UID, c.Version
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return c, fmt.Errorf("%s %q: %w", k.kind, c.Key, err)
	}
	u, err := client.Resource(k.resource).Namespace(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return c, written(k.kind, c.Key, err)
	}
	c.Version = u.GetResourceVersion()
	return c, nil
}
