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
	"k8s.io/apimachinery/pkg/watch"
)

// IsWatchListSemanticsUnSupported lets an informer list before it watches.
func (c *Client) IsWatchListSemanticsUnSupported() bool { return true }

// List lists the Leases of the namespace that the label selector of o matches. Faults do not meet it.
func (c *Client) List(_ context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	list, err := c.list(selector)
	c.awake()
	return list, err
}

func (c *Client) list(selector labels.Selector) (*coordinationv1.LeaseList, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, refused()
	}
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)}}
	for _, lease := range s.leases {
		if c.selects(selector, lease) {
			list.Items = append(list.Items, *lease.DeepCopy())
		}
	}
	return list, nil
}

// Watch watches the Leases that List lists, from the version of o, which 410 Gone answers if it was forgotten. It ends with ctx. While the
// machine of the client is suspended nothing arrives.
func (c *Client) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	from, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q: a watch needs a decimal number here", o.ResourceVersion))
	}
	w, err := c.watch(ctx, selector, from)
	c.awake()
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (c *Client) watch(ctx context.Context, selector labels.Selector, from uint64) (*watcher, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, refused()
	}
	if from < s.dropped || from > s.version { // the latter after Restore
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.dropped))
	}
	w := &watcher{client: c, selector: selector, from: from, events: make(chan watch.Event), stop: make(chan struct{})}
	go w.run(ctx.Done(), s.broken)
	return w, nil
}

func (c *Client) selects(selector labels.Selector, lease *coordinationv1.Lease) bool {
	return lease != nil && lease.Namespace == c.namespace && selector.Matches(labels.Set(lease.Labels))
}

func refused() error {
	return fmt.Errorf("dial tcp 192.0.2.1:443: connect: %w", syscall.ECONNREFUSED)
}

type watcher struct {
	client   *Client
	selector labels.Selector
	from     uint64
	events   chan watch.Event
	stop     chan struct{}
	once     sync.Once
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() { w.once.Do(func() { close(w.stop) }) }

func (w *watcher) run(ended, broken <-chan struct{}) {
	defer close(w.events)
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return false
		case <-ended:
		case <-w.stop:
		case <-broken:
		}
		return true
	}
	for {
		events, changed := w.next()
		for _, e := range events {
			if over(w.client.running()) {
				return
			}
			select {
			case w.events <- e:
			case <-ended:
				return
			case <-w.stop:
				return
			case <-broken:
				return
			}
		}
		if over(changed) {
			return
		}
	}
}

// next returns what has happened since the last call, and a channel that is closed when there is more.
func (w *watcher) next() ([]watch.Event, <-chan struct{}) {
	s := w.client.server
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.history, w.from, func(c change, from uint64) int {
		return int(c.version) - int(from) - 1 //nolint:gosec // versions of a test are small
	})
	var events []watch.Event
	for _, c := range s.history[first:] {
		w.from = c.version
		if e, ok := w.event(c); ok {
			events = append(events, e)
		}
	}
	return events, s.changed
}

// event is what a change is to those who see the selected Leases alone: a Lease whose labels come to match is added to them.
func (w *watcher) event(c change) (watch.Event, bool) {
	now, before := w.client.selects(w.selector, c.lease) && c.kind != watch.Deleted, w.client.selects(w.selector, c.before)
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
