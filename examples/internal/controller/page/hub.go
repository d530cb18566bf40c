// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
)

// A Source is where the fleet is seen: caches, so that nothing is asked of the API server. What it returns is not changed.
type Source interface {
	// Seen is the fleet without pods and budgets, and with the time; false before it has been seen whole.
	Seen() (*view.Seen, bool)
	// On are the pods of a node, and the PodDisruptionBudgets of their namespaces.
	On(node string) ([]*corev1.Pod, []policyv1.PodDisruptionBudget)
	// Heard is the last time at which what is seen was known to be what there is: that of the last word from the API server. Zero before the first.
	Heard() time.Time
}

// Options of a Hub. The zero value of each field but Source is a good choice.
type Options struct {
	// Source is where the fleet is seen.
	Source Source
	// Every is how long a model is kept at least while something changes, Refresh how long it is kept though nothing does: some reasons change with
	// the time alone. Zero means a second, and ten.
	Every, Refresh time.Duration
	// Beat is how often a reader hears of the hub though nothing changes. Zero means 15 seconds. Who has missed three of them is right to call it lost.
	Beat time.Duration
	// Silence is how old the last word from the API server may be until readers are told that what they see may not be so any more. It must be
	// longer than what passes without a word in a quiet cluster. Zero means a minute.
	Silence time.Duration
	// Name says to people which cluster it is.
	Name string
	// Readers is how many there are at most at a time. Zero means 100.
	Readers int
	// Hosts are names under which the page is known, besides addresses and localhost.
	Hosts []string
}

// WriteTime is how long a reader may take for one write.
const WriteTime = 20 * time.Second

// A Hub has the newest model for those who read it. Make it with [New].
type Hub struct {
	o      Options
	build  string        // of the files of the page: a browser that has other ones gets them anew
	joined chan struct{} // has a value when somebody came while there was no model

	mu      sync.Mutex
	readers map[chan struct{}]bool
	newest  *version

	telling sync.Mutex // one story at a time
}

// A version is a model with its number, and what has changed since the one before, both as they are sent. It does not change.
type version struct {
	number uint64
	model  Model
	// whole is made when somebody needs it first.
	whole  func() ([]byte, error)
	change []byte
}

// New returns a Hub without readers.
func New(o Options) (*Hub, error) {
	if o.Source == nil {
		return nil, errors.New("making the fleet page: source must be set")
	}
	for _, d := range []*time.Duration{&o.Every, &o.Refresh, &o.Beat, &o.Silence} {
		if *d < 0 {
			return nil, fmt.Errorf("making the fleet page: a duration is %s, must not be negative", *d)
		}
	}
	o.Every, o.Refresh, o.Beat = orElse(o.Every, time.Second), orElse(o.Refresh, 10*time.Second), orElse(o.Beat, 15*time.Second)
	o.Silence, o.Readers = orElse(o.Silence, time.Minute), orElse(o.Readers, 100)
	return &Hub{o: o, build: build(), joined: make(chan struct{}, 1), readers: map[chan struct{}]bool{}}, nil
}

func orElse[T comparable](value, other T) T {
	var zero T
	if value == zero {
		return other
	}
	return value
}

// Run makes models until ctx ends, while somebody reads: after a value of wake, which says that something may have changed, and is never
// closed.
func (h *Hub) Run(ctx context.Context, wake <-chan struct{}) error {
	look := time.NewTicker(h.o.Every)
	defer look.Stop()
	changed, last := true, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
			changed = true
			continue
		case <-h.joined:
		case <-look.C:
		}
		has, read := h.state()
		if !read || has && !changed && time.Since(last) < h.o.Refresh {
			continue
		}
		made, err := h.renew()
		if err != nil {
			return err
		}
		if made {
			changed, last = false, time.Now()
		}
	}
}

// state reports whether there is a model, and whether anybody reads.
func (h *Hub) state() (has, read bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest != nil, len(h.readers) > 0
}

// renew makes the newest version, and wakes the readers if it is another one. False if nothing is seen yet.
func (h *Hub) renew() (bool, error) {
	seen, whole := h.o.Source.Seen()
	if !whole {
		return false, nil
	}
	model := Of(seen)
	before := h.version()
	next := newVersion(model)
	if before != nil {
		change := Diff(before.model, model)
		if change.Empty() {
			return true, nil
		}
		raw, err := json.Marshal(change)
		if err != nil {
			return false, fmt.Errorf("writing a change of the fleet page: %w", err)
		}
		next.number, next.change = before.number+1, raw
	}
	h.publish(next)
	return true, nil
}

func newVersion(m Model) *version {
	return &version{number: 1, model: m, whole: sync.OnceValues(func() ([]byte, error) { return json.Marshal(m) })}
}

// publish makes a version the newest, unless everybody has left in the meantime.
func (h *Hub) publish(v *version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) == 0 {
		return
	}
	h.newest = v
	for wake := range h.readers {
		select {
		case wake <- struct{}{}:
		default: // it is about to look anyway
		}
	}
}

// version is the newest; nil if there is none.
func (h *Hub) version() *version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest
}

// join adds a reader, who has a value in wake when there is a version, and after each new one; false if there are too many.
func (h *Hub) join() (wake chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) >= h.o.Readers {
		return nil, false
	}
	wake = make(chan struct{}, 1)
	h.readers[wake] = true
	if h.newest != nil {
		wake <- struct{}{}
		return wake, true
	}
	select {
	case h.joined <- struct{}{}:
	default:
	}
	return wake, true
}

// leave takes a reader away. With the last one goes the model: it would be an old one for the next.
func (h *Hub) leave(wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, wake)
	if len(h.readers) == 0 {
		h.newest = nil
	}
}

// since is the event that brings a reader from a version to a later one; from nil, the whole.
func (v *version) since(held *version) (event string, data []byte, err error) {
	switch {
	case held == nil:
		data, err = v.whole()
		return eventModel, data, err
	case held.number+1 == v.number:
		return eventChange, v.change, nil
	}
	data, err = json.Marshal(Diff(held.model, v.model))
	return eventChange, data, err
}

// Story tells of a node; [ErrNoNode] if there is none of that name, [ErrNotSeen] if the fleet has not been seen whole.
func (h *Hub) Story(node string) (Story, error) {
	h.telling.Lock()
	defer h.telling.Unlock()
	seen, whole := h.o.Source.Seen()
	if !whole {
		return Story{}, fmt.Errorf("telling of node %q: %w", node, ErrNotSeen)
	}
	seen.Pods, seen.Budgets = h.o.Source.On(node)
	return StoryOf(seen, node)
}

// ErrNotSeen says that the fleet has not been seen whole yet.
var ErrNotSeen = errors.New("the cluster has not been seen whole yet")
