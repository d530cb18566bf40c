// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// What somebody may still read.
//
// A controller may act on any past version of any object, so a state has to know of them all. But two states that differ only in versions that nobody
// can tell apart are one: every move that is possible in one is possible in the other, leads to states that are again one, and breaks the same rules.
// So a state has, in place of the set of all versions, the set of what they allow:
//
//   - Of past versions of the ledger the orders of a node look at its slot alone ([walk.order]): the state has every slot that the node ever had.
//     A controller that makes a shadow anew has read the ledger since: the state has every shadow that it may come to make.
//   - A past version of a shadow is read to admit, to retry, to release, and to acknowledge. What may be done by it is tried, with the protocol's own
//     functions, on a ledger of which nothing else stands in the way: each thing that may be is a [proof], and the state has those of all versions.
//     What is done in a state is then done by a version of the shadow that had the proof first, in whichever state that was.
//
// All are unions over the versions: what one more version adds does not depend on those before. For slots and new shadows there is nothing more to show.
// For proofs there is one thing, that a call on any ledger of the world comes to the same by a version as by the one that stands for it:
// [walk.mistaken] looks at all of them once the walk is over. TestNothingIsLost walks worlds with whole sets of versions besides, and compares each
// state and each move.
//
// Worlds without a compare-and-swap have whole sets of what is then written by.

// A proof is something that is done on the ledger by a version of a shadow.
type proof struct {
	uid string
	op  uint8
	k   protocol.Attempt // that of the node's slot; 0 where it has none
}

// What is tried besides the calls that are made.
const (
	opAcknowledge = iota + 200
	opGranted     // that an attempt was granted
	opSlot        // that a node has a slot
)

// shown are the proofs that a version of a shadow is, sorted.
func (w *walk) shown(shadow uint16) []uint16 {
	for int(shadow) >= len(w.proven) {
		w.proven = append(w.proven, w.prove(uint16(len(w.proven))))
	}
	return w.proven[shadow]
}

func (w *walk) prove(shadow uint16) (all []uint16) {
	sh := w.shadows.all[shadow]
	add := func(op uint8, k protocol.Attempt) {
		n := w.proofs.number(proof{sh.UID, op, k})
		if int(n) == len(w.examples) {
			w.examples = append(w.examples, shadow)
		}
		all = with(all, n)
	}
	if _, err := w.try(opAdmit, protocol.Ledger{}, sh); err == nil {
		add(opAdmit, 0)
	}
	for k := protocol.Attempt(1); int(k) <= w.o.Attempts; k++ {
		l := protocol.Ledger{Epoch: k, Slots: []protocol.Slot{{Node: sh.Node, UID: sh.UID, Attempt: k, Rollout: rolloutUID}}}
		for _, op := range withSlot() {
			if _, err := w.try(op, l, sh); err == nil {
				add(op, k)
			}
		}
	}
	if k := sh.Orders.Grant; k > 0 {
		add(opGranted, k)
	}
	return all
}

// withSlot are the calls about a node that has a slot.
func withSlot() []uint8 { return []uint8{opRetry, opRelease, opAcknowledge} }

// try makes a call. Acknowledging is one for each node, and changes nothing.
func (w *walk) try(op uint8, l protocol.Ledger, sh protocol.Shadow) (protocol.Ledger, error) {
	switch op {
	case opAdmit:
		return l.Admit(protocol.Admission{Shadow: sh, Rollout: rolloutUID, Keys: w.placed(sh.Node)}, w.caps, nil)
	case opRetry:
		return l.Retry(sh, rolloutUID)
	case opAcknowledge:
		_, waiting := protocol.Acknowledged(l, "", func(uid string) (protocol.Shadow, bool) { return sh, uid == sh.UID })
		if slices.Contains(waiting, sh.Node) {
			return l, protocol.ErrRefused
		}
		return l, nil
	}
	return w.released(l, sh)
}

// versions are those of a node's shadow by which something is tried: any that there were stands for all by which the same may be done.
func (w *walk) versions(n nodeState, i int, op uint8, k protocol.Attempt) []uint16 {
	if w.whole {
		return n.shadows
	}
	p, ok := w.proofs.index[proof{nodeName(i), op, k}]
	if _, found := slices.BinarySearch(n.shown, p); !ok || !found {
		return nil
	}
	return w.examples[p : p+1]
}

// slotOf is the number of the slot that a node has on a ledger.
func (w *walk) slotOf(i int, ledger uint16) (uint16, bool) {
	return w.once(step{opSlot, uint8(i), ledger, 0}, func() (uint16, error) {
		slot := w.ledgers.all[ledger].Slot(nodeName(i))
		if slot == nil {
			return 0, protocol.ErrRefused
		}
		return w.slots.number(*slot), nil
	})
}

// had are the slots that a node had in some version of the ledger.
func (w *walk) had(s state, i int) (all []protocol.Slot) {
	if !w.whole {
		for _, v := range s.nodes[i].slots {
			all = append(all, w.slots.all[v])
		}
		return all
	}
	for _, v := range s.ledgers {
		if slot := w.ledgers.all[v].Slot(nodeName(i)); slot != nil {
			all = append(all, *slot)
		}
	}
	return all
}

// creatable are the shadows that a controller may make that has read the ledger since there is none.
func (w *walk) creatable(n nodeState, i int) (all []uint16) {
	if !w.whole {
		return n.fresh
	}
	for _, v := range n.since {
		all = append(all, w.created(i, v))
	}
	return all
}

// wrote is the node with a next version of its shadow.
func (w *walk) wrote(n nodeState, shadow uint16) nodeState {
	n.shadow, n.since, n.fresh, n.shown = shadow, nil, nil, union(n.shown, w.shown(shadow))
	if w.whole || w.o.Without == CommitCAS {
		n.shadows = with(n.shadows, shadow)
	}
	return n
}

// stored is the state in which the ledger has a next version.
func (w *walk) stored(s state, ledger uint16) state {
	s.ledger = ledger
	if w.whole || w.o.Without == LedgerCAS {
		s.ledgers = with(s.ledgers, ledger)
	}
	nodes := slices.Clone(s.nodes)
	for i := range nodes {
		if slot, ok := w.slotOf(i, ledger); ok {
			nodes[i].slots = with(nodes[i].slots, slot)
		}
		if nodes[i].shadow == missing {
			nodes[i].fresh = with(nodes[i].fresh, w.created(i, ledger))
			if w.whole {
				nodes[i].since = with(nodes[i].since, ledger)
			}
		}
	}
	s.nodes = nodes
	return s
}

// mistaken says where a version of a shadow is not what the one that stands for it is, on any ledger of this world.
func (w *walk) mistaken() error {
	for _, l := range w.ledgers.all {
		for i := range w.o.Nodes {
			ops, k := []uint8{opAdmit}, protocol.Attempt(0)
			if slot := l.Slot(nodeName(i)); slot != nil {
				ops, k = withSlot(), slot.Attempt
			}
			for _, op := range ops {
				if err := w.mistakenOn(l, proof{nodeName(i), op, k}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *walk) mistakenOn(l protocol.Ledger, p proof) error {
	n, ok := w.proofs.index[p]
	var want protocol.Ledger
	if ok {
		var err error
		want, err = w.try(p.op, l, w.shadows.all[w.examples[n]])
		ok = err == nil
	}
	for v, sh := range w.shadows.all {
		if sh.UID != p.uid {
			continue
		}
		_, has := slices.BinarySearch(w.shown(uint16(v)), n)
		got, err := w.try(p.op, l, sh)
		if may := ok && has; may != (err == nil) || may && !reflect.DeepEqual(got, want) {
			return fmt.Errorf("a version of a shadow does not stand for another one: on the ledger %+v call %d by %+v: %+v, %w", l, p.op, sh, got, err)
		}
	}
	return nil
}

// union returns the sorted set of what is in either; those given stay as they are.
func union(a, b []uint16) []uint16 {
	for _, v := range b {
		a = with(a, v)
	}
	return a
}
