// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The design that this protocol replaces: each node carries a mark "in flight", and a leader that counts them in its cache marks the next one.
// Compare the worlds of Explore: here the watch is even in order, and nothing is ever lost.
type marks struct {
	nodes, limit, leaders int
	ownWrites             bool // a leader waits until its cache shows its own last write
}

// A markNode is ready, marked and disrupted, and done, in this order.
type markNode struct{ ready, marked, done bool }

type markWorld struct {
	log   [][]markNode // every version of all marks, in order
	seen  []int        // how far each leader's cache is
	wrote []int        // the version of each leader's last write
	trace []string
}

func (w markWorld) live() []markNode { return w.log[len(w.log)-1] }

func (w markWorld) next(label string, change func(*markWorld)) markWorld {
	n := markWorld{log: slices.Clone(w.log), seen: slices.Clone(w.seen), wrote: slices.Clone(w.wrote), trace: append(slices.Clone(w.trace), label)}
	change(&n)
	return n
}

func (w markWorld) set(i int, node markNode, label string) markWorld {
	return w.next(label, func(n *markWorld) {
		all := slices.Clone(w.live())
		all[i] = node
		n.log = append(n.log, all)
	})
}

func markedOf(nodes []markNode) (n int) {
	for _, x := range nodes {
		if x.marked {
			n++
		}
	}
	return n
}

// moves are all worlds that follow.
func (m marks) moves(w markWorld) (out []markWorld) {
	for i, n := range w.live() {
		if !n.ready {
			out = append(out, w.set(i, markNode{ready: true}, fmt.Sprintf("n%d ready", i)))
		}
		if n.marked {
			out = append(out, w.set(i, markNode{ready: true, done: true}, fmt.Sprintf("n%d done", i)))
		}
	}
	for leader := range m.leaders {
		if w.seen[leader] < len(w.log)-1 {
			out = append(out, w.next(fmt.Sprintf("cache %d advances", leader), func(n *markWorld) { n.seen[leader]++ }))
		}
		if m.ownWrites && w.seen[leader] < w.wrote[leader] {
			continue
		}
		cache := w.log[w.seen[leader]]
		i := slices.Index(cache, markNode{ready: true})
		if live := w.live(); i >= 0 && markedOf(cache) < m.limit && !live[i].marked && !live[i].done {
			taken := w.set(i, markNode{ready: true, marked: true}, fmt.Sprintf("leader %d takes n%d", leader, i))
			taken.wrote[leader] = len(taken.log) - 1
			out = append(out, taken)
		}
	}
	return out
}

// break finds the shortest way past the limit, or none.
func (m marks) broken() []string {
	first := markWorld{log: [][]markNode{make([]markNode, m.nodes)}, seen: make([]int, m.leaders), wrote: make([]int, m.leaders)}
	seen, queue := map[string]bool{}, []markWorld{first}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if markedOf(w.live()) > m.limit {
			return w.trace
		}
		key := fmt.Sprint(w.log, w.seen, w.wrote)
		if seen[key] || len(w.log) > 7 {
			continue
		}
		seen[key] = true
		queue = append(queue, m.moves(w)...)
	}
	return nil
}

// Marks on nodes break a cap of one with a single leader in 6 steps; waiting for one's own writes mends that, and not two leaders.
func TestMarksOnNodesBreakTheCap(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     marks
		steps int // 0: none is found
	}{
		{"one leader", marks{nodes: 2, limit: 1, leaders: 1}, 6},
		{"one leader that waits for its own writes", marks{nodes: 2, limit: 1, leaders: 1, ownWrites: true}, 0},
		{"two leaders that wait for their own writes", marks{nodes: 3, limit: 1, leaders: 2, ownWrites: true}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := c.m.broken()
			if (len(trace) == 0) != (c.steps == 0) || len(trace) > c.steps {
				t.Errorf("got %d steps, want %d at most: %s", len(trace), c.steps, strings.Join(trace, "; "))
			}
			t.Log(strings.Join(trace, "; "))
		})
	}
}
