// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A ListWatch lists and watches the Leases of one namespace. It satisfies cache.ListerWatcher and cache.ListerWatcherWithContext.
type ListWatch struct {
	server    *Server
	namespace string
	selector  labels.Selector
}

// ListWatch returns the Leases of a namespace that selector matches, for an informer.
func (s *Server) ListWatch(namespace string, selector labels.Selector) *ListWatch {
	return &ListWatch{server: s, namespace: namespace, selector: selector}
}

// IsWatchListSemanticsUnSupported lets a reflector list before it watches.
func (l *ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List satisfies cache.ListerWatcher.
func (l *ListWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.TODO(), o)
}

// Watch satisfies cache.ListerWatcher.
func (l *ListWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.TODO(), o)
}

// ListWithContext lists.
func (l *ListWatch) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, refused()
	}
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)}}
	for _, lease := range s.leases {
		if l.matches(lease) {
			list.Items = append(list.Items, *lease.DeepCopy())
		}
	}
	return list, nil
}

// WatchWithContext watches from the version of o, which 410 Gone answers if it was forgotten.
func (l *ListWatch) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	from, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q: a watch needs a decimal number here", o.ResourceVersion))
	}
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, refused()
	}
	if from < s.dropped || from > s.version { // the latter after Restore
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.dropped))
	}
	w := &watcher{list: l, from: from, events: make(chan watch.Event), stop: make(chan struct{})}
	go w.run(s.broken)
	return w, nil
}

func (l *ListWatch) matches(lease *coordinationv1.Lease) bool {
	return lease != nil && lease.Namespace == l.namespace && l.selector.Matches(labels.Set(lease.Labels))
}

func refused() error {
	return fmt.Errorf("dial tcp 192.0.2.1:443: connect: %w", syscall.ECONNREFUSED)
}

type watcher struct {
	list   *ListWatch
	from   uint64
	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() { w.once.Do(func() { close(w.stop) }) }

func (w *watcher) run(broken <-chan struct{}) {
	defer close(w.events)
	for {
		events, changed := w.next()
		for _, e := range events {
			select {
			case w.events <- e:
			case <-w.stop:
				return
			case <-broken:
				return
			}
		}
		select {
		case <-changed:
		case <-w.stop:
			return
		case <-broken:
			return
		}
	}
}

// next returns what has happened since the last call, and a channel that is closed when there is more.
func (w *watcher) next() ([]watch.Event, <-chan struct{}) {
	s := w.list.server
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.history, w.from, func(c change, from uint64) int {
		return int(c.version) - int(from) - 1 //nolint:gosec // versions of a test are small
	})
	var events []watch.Event
	for _, c := range s.history[first:] {
		w.from = c.version
		if e, ok := w.list.event(c); ok {
			events = append(events, e)
		}
	}
	return events, s.changed
}

// event is what a change is to those who see the selected Leases alone: a Lease whose labels come to match is added to them.
func (l *ListWatch) event(c change) (watch.Event, bool) {
	now, before := l.matches(c.lease) && c.kind != watch.Deleted, l.matches(c.before)
	lease := c.lease.DeepCopy()
	switch {
	case now && before:
		return watch.Event{Type: watch.Modified, Object: lease}, true
	case now:
		return watch.Event{Type: watch.Added, Object: lease}, true
	case before:
		return watch.Event{Type: watch.Deleted, Object: lease}, true
	}
	return watch.Event{}, false
}
