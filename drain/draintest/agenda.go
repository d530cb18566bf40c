// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"container/heap"
	"time"
)

// An event is something that will happen in the cluster.
type event struct {
	due time.Time
	seq int64 // events of the same time happen in the order in which they were planned
	do  func()
}

// An agenda is a heap of events, the next one first.
type agenda []event

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a agenda) Less(i, j int) bool {
	if a[i].due.Equal(a[j].due) {
		return a[i].seq < a[j].seq
	}
	return a[i].due.Before(a[j].due)
}

func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// after plans do for the time after the delay. The caller holds the cluster.
func (c *Cluster) after(delay time.Duration, do func()) {
	c.version++ // any strictly growing number would do for the order
	heap.Push(&c.agenda, event{due: c.now().Add(delay), seq: c.version, do: do})
}

// enqueue plans do under a key, as a controller's queue does: what is planned already for an earlier time is not planned again, and a
// later one gives way.
func (c *Cluster) enqueue(key string, delay time.Duration, do func()) {
	due := c.now().Add(delay)
	if planned, ok := c.queued[key]; ok && !due.Before(planned) {
		return
	}
	c.queued[key] = due
	c.after(delay, func() {
		if planned, ok := c.queued[key]; ok && planned.Equal(due) {
			delete(c.queued, key)
			do()
		}
	})
}

// advance makes everything happen that is due, each event at its own time.
func (c *Cluster) advance() {
	now := c.o.Now()
	for len(c.agenda) > 0 && !c.agenda[0].due.After(now) {
		e := heap.Pop(&c.agenda).(event)
		c.at = e.due
		e.do()
		c.at = time.Time{}
	}
}
