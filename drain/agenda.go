// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"sync"
	"time"
)

// An agenda remembers which nodes of a set have reason for another pass, so that a change of one does not cost a pass over all. A nil
// agenda lets every node have its pass.
type agenda struct {
	wake chan struct{}

	mu      sync.Mutex
	due     map[string]time.Time // when the node asked to be looked at; the zero time: not before it changes
	changes map[string]int       // counts, so that a change during a pass is not lost
	seen    map[string]int
}

func newAgenda() *agenda {
	return &agenda{wake: make(chan struct{}, 1), due: map[string]time.Time{}, changes: map[string]int{}, seen: map[string]int{}}
}

// changed notes that a node has reason to be looked at, and wakes whoever waits.
func (a *agenda) changed(node string) {
	a.mu.Lock()
	a.changes[node]++
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// leaveOut takes the nodes that need no pass yet out of this one, and returns how soon the first of them does.
func (a *agenda) leaveOut(members []*member, now time.Time) time.Duration {
	if a == nil {
		return 0
	}
	var after time.Duration
	for _, m := range members {
		if !m.begun {
			continue
		}
		wait, rests := a.mayRest(m.node, now)
		m.visited = rests
		after = sooner(after, wait)
	}
	return after
}

// mayRest reports whether the node needs no pass yet, and how soon it does; zero is not before it changes.
func (a *agenda) mayRest(node string, now time.Time) (wait time.Duration, ok bool) {
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	due, known := a.due[node]
	if !known || a.changes[node] != a.seen[node] || (!due.IsZero() && !now.Before(due)) {
		return 0, false
	}
	if due.IsZero() {
		return 0, true
	}
	return due.Sub(now), true
}

// begin returns what done needs to know of the changes before a pass.
func (a *agenda) begin(node string) int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes[node]
}

// done notes when the node wants its next pass; a change since begin stands.
func (a *agenda) done(node string, begin int, now time.Time, after time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[node] = begin
	a.due[node] = time.Time{}
	if after > 0 {
		a.due[node] = now.Add(after)
	}
}
