// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import "slices"

// A mark says of a state what is possible in it. Bit i is that node i commits next.
type mark uint16

const (
	// markRest: no node is disrupted or has a slot.
	markRest mark = 1 << (mostNodes + iota)
	// markLeft: the ledger may admit further attempts.
	markLeft
)

func (w *walk) markOf(s state) (m mark) {
	l := w.ledgers.all[s.ledger]
	if len(l.Slots) == 0 && !slices.ContainsFunc(s.nodes, func(n nodeState) bool { return n.down }) {
		m |= markRest
	}
	if int(l.Epoch) < w.o.Attempts {
		m |= markLeft
	}
	return m
}

// hopeless counts the states that have no way to rest, and those with an attempt left from which some node cannot come to commit any more.
func (w *walk) hopeless() (stuck, starved int) {
	each := mark(1)<<w.o.Nodes - 1
	for n, way := range w.ways() {
		if way&markRest == 0 {
			stuck++
		}
		if w.marks[n]&markLeft != 0 && way&each != each {
			starved++
		}
	}
	return stuck, starved
}

// ways are the marks of all states to which there is a way, for each state.
func (w *walk) ways() []mark {
	starts, before := w.backwards()
	reach, queue := slices.Clone(w.marks), make([]int32, 0, len(w.marks))
	for n, m := range reach {
		if m != 0 {
			queue = append(queue, int32(n))
		}
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range before[starts[n]:starts[n+1]] {
			if reach[n]&^reach[p] != 0 {
				reach[p] |= reach[n]
				queue = append(queue, p)
			}
		}
	}
	return reach
}

// backwards are the states that lead to each: those of state n are before[starts[n]:starts[n+1]].
func (w *walk) backwards() (starts, before []int32) {
	starts = make([]int32, len(w.keys)+1)
	for _, e := range w.edges {
		starts[e.to+1]++
	}
	for i := range len(w.keys) {
		starts[i+1] += starts[i]
	}
	before = make([]int32, len(w.edges))
	fill := slices.Clone(starts)
	for _, e := range w.edges {
		before[fill[e.to]] = e.from
		fill[e.to]++
	}
	return starts, before
}
