// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// A record is what a tracker keeps of a peer besides the object that the informer holds anyway.
type record struct {
	lease      *coordinationv1.Lease
	changed    time.Duration // the fresh time at which its resourceVersion changed last
	roll       *roll
	prev, next *record // on the roll
}

// holder is empty for a Lease that was given back by emptying it.
func (r *record) holder() string { return holderOf(r.lease) }

// A roll holds the records of one state in the order of changed, the longest quiet first, so that those that are due stand in front. It is
// a list through the records: nothing is allocated for it.
type roll struct {
	state       State
	joined      bool // whether its peers have had a Joined without a Left since
	first, last *record
	n           int
}

// push appends r, which is on no roll.
func (l *roll) push(r *record) {
	r.roll, r.prev, r.next = l, l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.n++
}

// leave takes r off its roll, if it is on one.
func (r *record) leave() {
	l := r.roll
	if l == nil {
		return
	}
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.roll, r.prev, r.next = nil, nil, nil
	l.n--
}

// move puts r at the end of another roll, or of its own.
func (r *record) move(to *roll) {
	r.leave()
	to.push(r)
}

// due returns the first record if it has been quiet for at least d at the fresh time t.
func (l *roll) due(t, d time.Duration) (*record, bool) {
	return l.first, l.first != nil && l.first.changed+d <= t
}
