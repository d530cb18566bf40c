// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
)

// Watch calls changed, until stop is called, with the node of each pod, Node and VolumeAttachment that changes, with both nodes where an
// object moves, and with each PodDisruptionBudget that does. The Cache shows the change already. Calls come from the informers'
// goroutines, one for each kind of object, and hold up the informer's other handlers; one that is under way when stop is called ends
// after it.
func (c view) Watch(changed func(drain.Change)) (stop func()) { return c.watchers.add(changed) }

// watchers are those who want to hear of changes.
type watchers struct {
	mu     sync.Mutex
	next   int
	byID   map[int]func(drain.Change)
	listed []func(drain.Change) // of byID, never written to once it can be read outside of mu
}

func (w *watchers) add(changed func(drain.Change)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.next
	w.next++
	if w.byID == nil {
		w.byID = map[int]func(drain.Change){}
	}
	w.byID[id] = changed
	w.list()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byID, id)
		w.list()
	}
}

func (w *watchers) list() { w.listed = slices.Collect(maps.Values(w.byID)) }

// tell calls everybody, without the lock, so that they may add and stop watchers and read the Cache.
func (w *watchers) tell(change drain.Change) {
	w.mu.Lock()
	listed := w.listed
	w.mu.Unlock()
	for _, changed := range listed {
		changed(change)
	}
}

// handler turns the events of an informer into changes. node says which node an object stands for; nil is for objects that stand
// for none.
func (w *watchers) handler(node func(obj any) string) cache.ResourceEventHandler {
	tell := func(objs ...any) {
		var told drain.Change
		for _, obj := range objs {
			if change := changeOf(obj, node); change != told && change != (drain.Change{}) {
				told = change
				w.tell(change)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell(obj) },
		UpdateFunc: func(old, obj any) { tell(old, obj) },
		DeleteFunc: func(obj any) { tell(obj) },
	}
}

func changeOf(obj any, node func(obj any) string) drain.Change {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // the last that was known of it
	}
	if budget, ok := obj.(*policyv1.PodDisruptionBudget); ok {
		return drain.Change{Budget: types.NamespacedName{Namespace: budget.Namespace, Name: budget.Name}}
	}
	if node == nil {
		return drain.Change{}
	}
	return drain.Change{Node: node(obj)}
}
