// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/identity"
)

// A feed is a Source that does what an informer does, with two goroutines instead of a dozen: it lists, watches from there on, and lists again when
// the server does not go back that far.
type feed struct {
	leases identity.LeaseWatcher

	mu       sync.Mutex
	handlers map[*registered]cache.ResourceEventHandler
	shown    map[string]*coordinationv1.Lease
	listed   bool
	stuck    time.Time // until then nothing is delivered
}

func newFeed(leases identity.LeaseWatcher) *feed {
	return &feed{leases: leases, handlers: map[*registered]cache.ResourceEventHandler{}, shown: map[string]*coordinationv1.Lease{}}
}

func (f *feed) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, lease := range f.shown {
		handler.OnAdd(lease, true)
	}
	r := &registered{}
	f.handlers[r] = handler
	return r, nil
}

func (f *feed) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.handlers, handle.(*registered))
	return nil
}

// hangs lets the watch hang for a time.
func (f *feed) hangs(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stuck = time.Now().Add(d)
}

// run lists and watches until ctx ends.
func (f *feed) run(ctx context.Context) error {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			version = f.list(ctx)
		}
		if version != "" {
			version = f.watch(ctx, version)
		}
		f.nap(ctx, time.Second)
	}
	return nil
}

func (*feed) nap(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// list returns the version of the list, "" if the server did not answer.
func (f *feed) list(ctx context.Context) string {
	list, err := f.leases.List(ctx, metav1.ListOptions{LabelSelector: identity.ComponentLabel})
	if err != nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := map[string]bool{}
	for name := range f.shown {
		gone[name] = true
	}
	for i := range list.Items {
		f.show(&list.Items[i], !f.listed)
		delete(gone, list.Items[i].Name)
	}
	for name := range gone {
		for _, handler := range f.handlers {
			handler.OnDelete(cache.DeletedFinalStateUnknown{Key: namespace + "/" + name, Obj: f.shown[name]})
		}
		delete(f.shown, name)
	}
	f.listed = true
	return list.ResourceVersion
}

// watch returns the version to go on from, "" if it has to list.
func (f *feed) watch(ctx context.Context, version string) string {
	w, err := f.leases.Watch(ctx, metav1.ListOptions{LabelSelector: identity.ComponentLabel, ResourceVersion: version})
	if err != nil {
		return ""
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		f.mu.Lock()
		stuck := time.Until(f.stuck)
		f.mu.Unlock()
		f.nap(ctx, stuck)
		lease := e.Object.(*coordinationv1.Lease)
		f.deliver(e.Type, lease)
		version = lease.ResourceVersion
	}
	return version
}

func (f *feed) deliver(kind watch.EventType, lease *coordinationv1.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind != watch.Deleted {
		f.show(lease, false)
		return
	}
	for _, handler := range f.handlers {
		handler.OnDelete(lease)
	}
	delete(f.shown, lease.Name)
}

// show tells of a Lease. The caller holds the mutex.
func (f *feed) show(lease *coordinationv1.Lease, initial bool) {
	old := f.shown[lease.Name]
	for _, handler := range f.handlers {
		if old == nil {
			handler.OnAdd(lease, initial)
		} else {
			handler.OnUpdate(old, lease)
		}
	}
	f.shown[lease.Name] = lease
}
