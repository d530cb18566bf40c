// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A tracker decides what a view thinks of its peers. It has no client, no clock and no goroutine: it is told what was seen and when, in
// elapsed time, and says what changes by that.
type tracker struct {
	suspectAfter, liveness time.Duration
	massLoss               float64
	massLossHold           time.Duration

	clock   freshClock
	records map[types.NamespacedName]*record
	// held are those that are Suspect because the brake holds.
	unconfirmed, alive, suspect, held, lost roll
	// losses are the fresh times of the losses within the last Liveness.
	losses []time.Duration
}

// A change is an event before its Peer is made out.
type change struct {
	what   EventType
	reason LeaveReason
	peer   glimpse
}

// A glimpse is a peer at one moment.
type glimpse struct {
	state State
	quiet time.Duration
	lease *coordinationv1.Lease
}

func newTracker(c *ViewConfig) *tracker {
	return &tracker{
		suspectAfter: c.Suspect, liveness: c.Liveness, massLoss: c.MassLoss, massLossHold: c.MassLossHold,
		clock: freshClock{freshFor: c.FreshFor}, records: map[types.NamespacedName]*record{},
		unconfirmed: roll{state: Unconfirmed}, alive: roll{state: Alive, joined: true}, suspect: roll{state: Suspect, joined: true},
		held: roll{state: Suspect, joined: true}, lost: roll{state: Lost},
	}
}

// observe takes note of a Lease that was added or updated. initial is set for one that was there before the view.
func (t *tracker) observe(now time.Duration, lease *coordinationv1.Lease, initial bool) []change {
	key := keyOf(lease)
	r := t.records[key]
	if r == nil {
		r = &record{lease: lease, changed: t.clock.read(now)}
		t.records[key] = r
		switch {
		case r.holder() == "":
			t.lost.push(r)
		case initial:
			t.unconfirmed.push(r)
		default:
			return t.join(r)
		}
		return nil
	}
	if old := r.lease; old.ResourceVersion == lease.ResourceVersion && old.UID == lease.UID {
		r.lease = lease // the informer has listed again: its object is kept and ours is not
		return nil
	}
	return t.renew(now, r, lease)
}

// renew takes note of another version of a Lease.
func (t *tracker) renew(now time.Duration, r *record, lease *coordinationv1.Lease) []change {
	var changes []change
	if reason := replacement(r.lease, lease); reason != "" && r.roll.joined {
		changes = t.leave(now, r, reason)
	}
	was, lives := r.roll, signOfLife(r.lease, lease)
	r.lease, r.changed = lease, t.clock.read(now)
	switch {
	case r.holder() == "":
		r.move(&t.lost)
		return changes
	case len(changes) > 0, !was.joined && lives:
		return append(changes, t.join(r)...)
	case !was.joined: // somebody has edited the Lease of a dead one
		r.move(was)
		return nil
	}
	r.move(&t.alive)
	if was.state == Suspect {
		changes = append(changes, t.change(Recovered, "", r, r.changed))
	}
	return changes
}

// signOfLife says whether lease, the next version that was seen, was written by a holder and not by somebody who edits labels: another Lease,
// another holder, or another renew time, whichever.
func signOfLife(old, lease *coordinationv1.Lease) bool {
	return old.UID != lease.UID || holderOf(old) != holderOf(lease) || !old.Spec.RenewTime.Equal(lease.Spec.RenewTime)
}

// replacement says why the holder of old has left, if lease is the next version that was seen; empty if it has not.
func replacement(old, lease *coordinationv1.Lease) LeaveReason {
	switch holder := holderOf(lease); {
	case holder == "", old.UID != lease.UID:
		return LeftReleased
	case holder != holderOf(old):
		return LeftReplaced
	}
	return ""
}

// forget takes note of a Lease that was deleted.
func (t *tracker) forget(now time.Duration, key types.NamespacedName) []change {
	r := t.records[key]
	if r == nil {
		return nil
	}
	var changes []change
	if r.roll.joined {
		changes = t.leave(now, r, LeftReleased)
	}
	r.leave()
	delete(t.records, key)
	return changes
}

// prove takes note of a write of the canary, which was sent at the elapsed time sent.
func (t *tracker) prove(now, sent time.Duration) {
	if !t.clock.prove(now, sent) {
		return
	}
	latest := t.clock.read(now)
	for _, r := range t.records {
		r.changed = min(r.changed, latest)
	}
	for i, at := range t.losses {
		t.losses[i] = min(at, latest)
	}
}

// evaluate makes the changes that are due. While the view is not up to date nothing is.
func (t *tracker) evaluate(now time.Duration) []change {
	if !t.clock.fresh(now) {
		return nil
	}
	at, sure := t.clock.read(now), t.clock.settled
	t.losses = slices.DeleteFunc(t.losses, func(lost time.Duration) bool { return lost+t.liveness <= at })
	for r, due := t.unconfirmed.due(sure, t.liveness); due; r, due = t.unconfirmed.due(sure, t.liveness) {
		r.move(&t.lost)
	}
	var changes []change
	for r, due := t.alive.due(at, t.suspectAfter); due; r, due = t.alive.due(at, t.suspectAfter) {
		r.move(&t.suspect)
		changes = append(changes, t.change(Suspected, "", r, at))
	}
	return append(changes, t.lose(now, at, sure)...)
}

// lose makes those lost that are sure to have been quiet for Liveness, or holds them back.
func (t *tracker) lose(now, at, sure time.Duration) []change {
	var changes []change
	limit := t.liveness
	if t.brakes() {
		limit += t.massLossHold
		for r, due := t.suspect.due(sure, t.liveness); due; r, due = t.suspect.due(sure, t.liveness) {
			r.move(&t.held)
		}
	}
	for _, l := range []*roll{&t.held, &t.suspect} {
		for r, due := l.due(sure, limit); due; r, due = l.due(sure, limit) {
			changes = append(changes, t.leave(now, r, LeftQuiet)...)
			t.losses = append(t.losses, at)
			r.move(&t.lost)
		}
	}
	return changes
}

// brakes says whether too many peers would be lost at once: those that were lost within the last Liveness, and those that are quiet now and
// will be lost unless they come back.
func (t *tracker) brakes() bool {
	losing := len(t.losses) + t.suspect.n + t.held.n
	return losing > 1 && float64(losing) > t.massLoss*float64(losing+t.alive.n)
}

// next returns the elapsed time of the next change that is due if nothing is seen until then. Losses are due only when something is seen.
func (t *tracker) next(now time.Duration) (time.Duration, bool) {
	if !t.clock.fresh(now) {
		return 0, false
	}
	next := t.clock.ends()
	if first := t.alive.first; first != nil {
		next = min(next, t.clock.at(first.changed+t.suspectAfter))
	}
	if t.held.n > 0 && len(t.losses) > 0 {
		next = min(next, t.clock.at(t.losses[0]+t.liveness))
	}
	return next, true
}

// join makes r alive.
func (t *tracker) join(r *record) []change {
	r.move(&t.alive)
	return []change{t.change(Joined, "", r, r.changed)}
}

// leave tells that the holder of r has left. Where r goes is the caller's.
func (t *tracker) leave(now time.Duration, r *record, reason LeaveReason) []change {
	left := t.change(Left, reason, r, t.clock.read(now))
	left.peer.state = Lost
	return []change{left}
}

func (t *tracker) change(what EventType, reason LeaveReason, r *record, at time.Duration) change {
	return change{what: what, reason: reason, peer: r.glimpse(at)}
}

// glimpse is r at the fresh time at.
func (r *record) glimpse(at time.Duration) glimpse {
	return glimpse{state: r.roll.state, quiet: max(0, at-r.changed), lease: r.lease}
}

func keyOf(lease *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
}
