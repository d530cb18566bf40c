// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
)

// EventType is what has happened to a peer.
type EventType string

// The types of events.
const (
	// Joined: a new incarnation is alive, or a lost one has come back.
	Joined EventType = "Joined"
	// Suspected: it has been quiet for Suspect. Recovered: it is alive again after that.
	Suspected EventType = "Suspected"
	Recovered EventType = "Recovered"
	// Left: see Event.Reason.
	Left EventType = "Left"
)

// LeaveReason is why an incarnation has left.
type LeaveReason string

// The reasons of a [Left] event.
const (
	LeftQuiet    LeaveReason = "Quiet"    // it is Lost; never while the view is not up to date
	LeftReplaced LeaveReason = "Replaced" // another holder is in the Lease; its Joined comes next
	LeftReleased LeaveReason = "Released" // the Lease was deleted, or emptied; if it was made anew meanwhile, a Joined comes next
)

// An Event is a change of a peer.
type Event struct {
	Type   EventType
	Reason LeaveReason // of Left
	// Peer is as it is after the event. Of Left it is the one that left, as it was last seen, with the state Lost.
	Peer Peer
}

// A subscriber has events that its handler was not told yet.
type subscriber struct {
	handler func(Event)

	// The mutex of the view guards these.
	queue []change
	done  chan struct{} // closed when the goroutine that empties the queue ends; nil while there is none
}

// Subscribe calls handler for what happens from now on, one event after the other, first with a Joined for each peer that is alive or suspect.
// For each incarnation, that is each holder of a Lease, Joined and Left alternate, beginning with Joined. A slow handler holds up nobody
// else: its events wait in a queue without a limit. The handler may call the view.
//
// After cancel has returned, or Run, handler is not called any more. cancel must not be called from handler.
func (v *View) Subscribe(handler func(Event)) (cancel func()) {
	if v.clock == nil {
		return func() {}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &subscriber{handler: handler}
	var present []change
	now := v.clock.Elapsed()
	for _, seen := range v.glimpses(now, []State{Alive, Suspect}) {
		present = append(present, change{what: Joined, peer: seen})
	}
	v.subscribers[s] = true
	v.queue(s, present)
	return func() { v.unsubscribe(s) }
}

func (v *View) unsubscribe(s *subscriber) {
	v.mu.Lock()
	delete(v.subscribers, s)
	done := s.done
	v.mu.Unlock()
	if done != nil {
		<-done
	}
}

// queue has s told of changes. Run owns the goroutine that does it. The caller holds the mutex.
func (v *View) queue(s *subscriber, changes []change) {
	if len(changes) == 0 || !v.watch.running {
		return
	}
	s.queue = append(s.queue, changes...)
	if s.done == nil {
		s.done = make(chan struct{})
		v.deliveries.Go(func() { v.deliver(s) })
	}
}

// deliver empties the queue of s.
func (v *View) deliver(s *subscriber) {
	for {
		c, ok := v.take(s)
		if !ok {
			return
		}
		s.handler(Event{Type: c.what, Reason: c.reason, Peer: c.peer.peer()})
	}
}

// take returns the next change that s is to be told, and ends the delivery if there is none.
func (v *View) take(s *subscriber) (change, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(s.queue) == 0 || !v.watch.running || !v.subscribers[s] {
		close(s.done)
		s.queue, s.done = nil, nil
		return change{}, false
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	return c, true
}

// sourceOption names the Source in an error.
const sourceOption = "ViewConfig.Source"

// A handler is what a view is for its Source.
type handler struct {
	v   *View
	end context.CancelCauseFunc // ends Run with what is wrong with the Source
}

// OnAdd is called with each Lease that there is, and with each new one.
func (h handler) OnAdd(obj any, isInInitialList bool) { h.seeWhole(obj, isInInitialList) }

// OnUpdate is called with each new version of a Lease, and with unchanged ones.
func (h handler) OnUpdate(_, obj any) { h.seeWhole(obj, false) }

// seeWhole hands a Lease to the view, and ends it where the Source holds something else, or a part of a Lease.
func (h handler) seeWhole(obj any, isInInitialList bool) {
	lease, ok := obj.(*coordinationv1.Lease)
	switch {
	case !ok:
		h.end(&informer.Error{Option: sourceOption, Err: fmt.Errorf("it holds %T, want *%T", obj, coordinationv1.Lease{})})
	case lease.UID == "" || lease.ResourceVersion == "":
		h.end(&informer.Error{Option: sourceOption, Err: fmt.Errorf(
			"a Lease without uid or resourceVersion: %w", informer.ErrFieldMissing)})
	default:
		h.v.seen(lease, isInInitialList)
	}
}

// OnDelete is called with the last state of a Lease, or with what is known of it.
func (h handler) OnDelete(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		if namespace, name, err := cache.SplitMetaNamespaceKey(unknown.Key); err == nil {
			h.v.gone(types.NamespacedName{Namespace: namespace, Name: name})
		}
		return
	}
	if lease, ok := obj.(*coordinationv1.Lease); ok {
		h.v.gone(keyOf(lease))
	}
}
