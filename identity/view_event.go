// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

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
	if len(changes) == 0 || !v.running {
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
	if len(s.queue) == 0 || !v.running || !v.subscribers[s] {
		close(s.done)
		s.queue, s.done = nil, nil
		return change{}, false
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	return c, true
}
