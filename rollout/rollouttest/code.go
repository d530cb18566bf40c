// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// mostVersions is how many versions of an object a state can tell of.
const mostVersions = math.MaxUint8

// encode appends a state, so that equal states are equal bytes.
func (w *walk) encode(b []byte, s state) []byte {
	b = binary.BigEndian.AppendUint16(b, s.ledger)
	b = w.appendSet(b, s.ledgers)
	b = appendBool(b, s.acked)
	b = binary.BigEndian.AppendUint16(b, s.lost)
	for _, n := range s.nodes {
		b = binary.BigEndian.AppendUint16(b, n.shadow)
		b = w.appendSet(b, n.shadows)
		b = w.appendSet(b, n.shown)
		b = w.appendSet(b, n.slots)
		b = binary.BigEndian.AppendUint16(b, n.disk)
		b = appendBool(b, n.down)
		b = binary.BigEndian.AppendUint16(b, n.last)
		b = w.appendSet(b, n.since)
		b = w.appendSet(b, n.fresh)
	}
	return b
}

func (w *walk) decode(key string) state {
	r := reader(key)
	s := state{ledger: r.number(), ledgers: r.set(), acked: r.bool(), lost: r.number()}
	for range w.o.Nodes {
		s.nodes = append(s.nodes, nodeState{
			shadow: r.number(), shadows: r.set(), shown: r.set(), slots: r.set(), disk: r.number(), down: r.bool(), last: r.number(), since: r.set(), fresh: r.set(),
		})
	}
	return s
}

func (w *walk) appendSet(b []byte, set []uint16) []byte {
	if len(set) > mostVersions {
		w.full = fmt.Errorf("an object has had %d versions, the most that fits is %d, want a smaller world", len(set), mostVersions)
		set = set[:mostVersions] // the walk ends with the error
	}
	b = append(b, byte(len(set)))
	for _, v := range set {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// A reader takes a state apart again.
type reader string

func (r *reader) number() uint16 {
	v := uint16((*r)[0])<<8 | uint16((*r)[1])
	*r = (*r)[2:]
	return v
}

func (r *reader) bool() bool {
	v := (*r)[0] == 1
	*r = (*r)[1:]
	return v
}

func (r *reader) set() []uint16 {
	n := int((*r)[0])
	*r = (*r)[1:]
	out := make([]uint16, n)
	for i := range out {
		out[i] = r.number()
	}
	return out
}

// with returns a sorted set with one more value; the one given stays as it is.
func with(set []uint16, v uint16) []uint16 {
	i, found := slices.BinarySearch(set, v)
	if found {
		return set
	}
	out := make([]uint16, 0, len(set)+1)
	return append(append(append(out, set[:i]...), v), set[i:]...)
}
