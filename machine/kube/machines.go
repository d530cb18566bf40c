// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/resourceversion"

	"github.com/belayproject/belay/internal/watch"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// FieldManager is the name under which this package writes.
const FieldManager = "belay-machine"

const callTime = 10 * time.Second

// Machines reads and writes the Machine objects of one namespace, or of all. Pass it to [controller.New]. Only
// [NewMachines] makes one; do not embed it.
type Machines interface {
	// Get, List and Twins read from a local cache, and omit objects that this version cannot decode. Live, ListLive and
	// writes call the API server.
	controller.Machines
	// Gone reports whether the API server has no machine of that name, as namespace/name, with that UID. By it a
	// rollout.Slots frees the slot of a machine that was deleted: set it as Holders.
	Gone(ctx context.Context, name, uid string) (bool, error)
	// Run starts the watch and returns when ctx ends. It calls changed for each machine that changes; changed must not
	// block. Call it once; the function [Run] of this package calls it for you.
	Run(ctx context.Context, changed func(machine.Key)) error
	// Synced reports whether the cache has every object that existed when Run began. Do not reconcile before.
	Synced() bool

	asStore() *machineStore
}

// A machineStore is a [Machines].
type machineStore struct {
	client    dynamic.Interface
	namespace string
	informer  cache.SharedIndexInformer
	// nodeOf is what the conditions of a machine's status are computed from; nil leaves them to the status alone.
	nodeOf func(m machine.Machine) *machine.Node

	mu  sync.Mutex
	own map[machine.Key]*v1alpha1.Machine // what this process has written, until the watch has come so far
}

func (s *machineStore) asStore() *machineStore { return s }

const byProviderID = "providerID"

// NewMachines returns the machines of a namespace; "" is all. They are empty until Run. client is that of the
// management cluster; an error names it if it is missing.
func NewMachines(client dynamic.Interface, namespace string) (Machines, error) {
	err := option.CheckRequired("machine/kube.NewMachines", "client", client, "see dynamic.NewForConfig")
	if err != nil {
		return nil, err
	}
	index := func(of func(*v1alpha1.Machine) []string) cache.IndexFunc {
		return func(obj any) ([]string, error) {
			if m, ok := obj.(*v1alpha1.Machine); ok {
				return of(m), nil
			}
			return nil, nil
		}
	}
	indexers := cache.Indexers{
		byProviderID: index(providerIDs), byToken: index(func(m *v1alpha1.Machine) []string { return []string{m.Status.Token} }),
	}
	informer := watch.NewInformer(client, v1alpha1.MachinesResource, namespace, indexers, nil)
	own := map[machine.Key]*v1alpha1.Machine{}
	return &machineStore{client: client, namespace: namespace, informer: informer, own: own}, nil
}

func providerIDs(m *v1alpha1.Machine) []string {
	ids := map[string]bool{m.Spec.ProviderID: true}
	if i := m.Status.Instance; i != nil {
		ids[i.ProviderID] = true
	}
	delete(ids, "")
	return slices.Sorted(maps.Keys(ids))
}

// Run watches until ctx ends. changed is called with each machine that has changed; it must not block. Call it once.
func (s *machineStore) Run(ctx context.Context, changed func(machine.Key)) error {
	if err := s.informer.SetTransform(read[v1alpha1.Machine]); err != nil {
		return fmt.Errorf("watch machines: %w", err)
	}
	if err := s.watch(changed); err != nil {
		return err
	}
	s.informer.RunWithContext(ctx)
	return nil
}

// watch has changed called with each machine that has changed; it must not block.
func (s *machineStore) watch(changed func(machine.Key)) error {
	if err := option.CheckRequired(
		"machine/kube.Machines.Run", "changed", changed, "what reconciles a machine",
	); err != nil {
		return err
	}
	tell := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(metav1.Object); ok {
			changed(machine.Key{Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell})
	if err != nil {
		return fmt.Errorf("watch machines: %w", err)
	}
	return nil
}

// read is the transform of an informer. What this version can't read stays as it is.
func read[T any](obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	u.SetManagedFields(nil)
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return obj, nil //nolint:nilerr // see above
	}
	return typed, nil
}

// Synced reports whether everything is there that there was when Run began. Nothing must be reconciled before.
func (s *machineStore) Synced() bool {
	return s.informer.HasSynced()
}

// seen is the newest version that this process knows; nil if it knows none.
func (s *machineStore) seen(key machine.Key) *v1alpha1.Machine {
	obj, _, _ := s.informer.GetStore().GetByKey(cacheKey(key)) // the store of an informer has no errors
	cached, _ := obj.(*v1alpha1.Machine)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[key]
	if own == nil {
		return cached
	}
	if cached == nil || cached.UID != own.UID || !older(cached.ResourceVersion, own.ResourceVersion) {
		delete(s.own, key)
		return cached
	}
	return own
}

func cacheKey(key machine.Key) string { return key.String() }

// older reports whether version a was before b; where that can't be told it was not.
func older(a, b string) bool {
	cmp, err := resourceversion.Compare(a, b)
	return err == nil && cmp < 0
}

// Get implements [controller.Machines], from the cache.
func (s *machineStore) Get(_ context.Context, key machine.Key) (machine.Machine, error) {
	m := s.seen(key)
	if m == nil {
		return machine.Machine{}, fmt.Errorf("machine %q: %w", key, fs.ErrNotExist)
	}
	return m.Core()
}

// Live implements [controller.Machines], from the API server.
func (s *machineStore) Live(ctx context.Context, key machine.Key) (machine.Machine, error) {
	m, err := s.live(ctx, key)
	if err != nil {
		return machine.Machine{}, err
	}
	return m.Core()
}

func (s *machineStore) live(ctx context.Context, key machine.Key) (*v1alpha1.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := s.of(key).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, failed("read", key, err)
	}
	return s.wrote(key, u)
}

func (s *machineStore) of(key machine.Key) dynamic.ResourceInterface {
	return s.client.Resource(v1alpha1.MachinesResource).Namespace(key.Namespace)
}

// wrote keeps what the API server has answered, until the watch has come so far.
func (s *machineStore) wrote(key machine.Key, u *unstructured.Unstructured) (*v1alpha1.Machine, error) {
	u.SetManagedFields(nil)
	m := &v1alpha1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
		return nil, fmt.Errorf("machine %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.own[key]; old == nil || old.UID != m.UID || older(old.ResourceVersion, m.ResourceVersion) {
		s.own[key] = m
	}
	return m, nil
}

// failed says what an error means.
func failed(doing string, key machine.Key, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s machine %q: %w", doing, key, fs.ErrNotExist)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s machine %q: %w", doing, key, controller.ErrConflict)
	}
	return fmt.Errorf("%s machine %q: %w", doing, key, err)
}

// List implements [controller.Machines], from the cache. What can't be read is left out.
func (s *machineStore) List(context.Context) ([]machine.Machine, error) {
	return s.readable(), nil
}

// ListLive implements [controller.Machines], from the API server.
func (s *machineStore) ListLive(ctx context.Context) ([]machine.Machine, error) {
	return s.within(ctx, s.namespace, true)
}

func (s *machineStore) readable() (all []machine.Machine) {
	for _, obj := range s.informer.GetStore().List() {
		o, ok := obj.(metav1.Object)
		if !ok {
			continue
		}
		if m := s.seen(machine.Key{Namespace: o.GetNamespace(), Name: o.GetName()}); m != nil {
			if c, err := m.Core(); err == nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// ofToken calls f with the machines that have a token.
func (s *machineStore) ofToken(token string, f func(machine.Key)) {
	found, err := s.informer.GetIndexer().ByIndex(byToken, token)
	if err != nil {
		return // there is that index
	}
	for _, obj := range found {
		if o, ok := obj.(*v1alpha1.Machine); ok {
			f(machine.Key{Namespace: o.Namespace, Name: o.Name})
		}
	}
}

// Twins implements [controller.Machines], from an index.
func (s *machineStore) Twins(_ context.Context, m machine.Machine, providerID string) ([]machine.Key, error) {
	found, err := s.informer.GetIndexer().ByIndex(byProviderID, providerID)
	if err != nil {
		return nil, fmt.Errorf("look for ProviderID %q: %w", providerID, err)
	}
	var twins []machine.Key
	for _, obj := range found {
		if o, ok := obj.(*v1alpha1.Machine); ok && string(o.UID) != m.UID {
			twins = append(twins, machine.Key{Namespace: o.Namespace, Name: o.Name})
		}
	}
	return twins, nil
}

// Gone reports whether the API server has no machine of that name, as namespace/name, with that UID.
func (s *machineStore) Gone(ctx context.Context, name, uid string) (bool, error) {
	namespace, of, ok := strings.Cut(name, "/")
	if !ok {
		return false, fmt.Errorf("machine %q: want namespace/name", name)
	}
	m, err := s.live(ctx, machine.Key{Namespace: namespace, Name: of})
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && string(m.UID) != uid, err
}
