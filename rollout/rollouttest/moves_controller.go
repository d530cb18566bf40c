// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// The requests of the one abort and the one pause that the worlds have.
const (
	abortRequest = "abort"
	pauseRequest = "pause"
)

// expand adds every state that one move leads to.
func (w *walk) expand(s state) {
	w.from = s
	w.closing(s)
	for i := range s.nodes {
		w.admit(s, i)
		w.retry(s, i)
		w.release(s, i)
		w.lose(s, i)
		if s.nodes[i].shadow != missing {
			w.order(s, i)
			w.agent(s, i)
		}
	}
}

// A step is one call of a step function, by its arguments.
type step struct {
	op   uint8
	node uint8
	a, b uint16
}

// Calls that are remembered.
const (
	opAdmit = iota
	opRetry
	opRelease
	opGrant
	opRevoke
	opAnswer
	opEnd
	opCreate
)

// refused is remembered of a call that the protocol refuses.
const refused = 1 << 31

// once makes a call, or remembers what it came to.
func (w *walk) once(s step, call func() (uint16, error)) (uint16, bool) {
	n, ok := w.steps[s]
	if !ok {
		v, err := call()
		if n = uint32(v); err != nil {
			n = refused
		}
		w.steps[s] = n
	}
	return uint16(n), n != refused
}

// put is the state in which one node is another one.
func (s state) put(i int, n nodeState) state {
	nodes := make([]nodeState, len(s.nodes))
	copy(nodes, s.nodes)
	nodes[i] = n
	s.nodes = nodes
	return s
}

// readable are the versions of the ledger on which a slot may be admitted: the live one, by compare-and-swap.
func (w *walk) readable(s state) []uint16 {
	if w.o.Without == LedgerCAS {
		return s.ledgers
	}
	return []uint16{s.ledger}
}

func (w *walk) admit(s state, i int) {
	if int(w.ledgers.all[s.ledger].Epoch) >= w.o.Attempts {
		return
	}
	for _, v := range w.readable(s) {
		w.write(s, i, opAdmit, v, 0, "admit n%d")
	}
}

func (w *walk) retry(s state, i int) {
	l := w.ledgers.all[s.ledger]
	if slot := l.Slot(nodeName(i)); w.o.Retry && slot != nil && int(l.Epoch) < w.o.Attempts {
		w.write(s, i, opRetry, s.ledger, slot.Attempt, "retry n%d")
	}
}

// release frees a slot by any version of the shadow that there ever was.
func (w *walk) release(s state, i int) {
	if slot := w.ledgers.all[s.ledger].Slot(nodeName(i)); slot != nil {
		w.write(s, i, opRelease, s.ledger, slot.Attempt, "release n%d")
	}
}

// write stores what a call on a version of the ledger comes to, by any version of the node's shadow: all that allow it lead to the same ledger.
func (w *walk) write(s state, i int, op uint8, ledger uint16, k protocol.Attempt, move string) {
	for _, seen := range w.versions(s.nodes[i], i, op, k) {
		next, ok := w.once(step{op, uint8(i), ledger, seen}, func() (uint16, error) {
			l, err := w.try(op, w.ledgers.all[ledger], w.shadows.all[seen])
			return w.ledgers.number(l), err
		})
		if ok {
			w.follow(w.stored(s, next), move, i)
			return
		}
	}
}

func (w *walk) released(l protocol.Ledger, sh protocol.Shadow) (protocol.Ledger, error) {
	switch {
	case w.o.Without == Facts, w.o.Without == AttemptMatch && sh.Report.Attempt > 0 && sh.Report.Phase.AtRest():
		return l.Gone(sh.UID)
	}
	return l.Release(sh)
}

// order lets controllers that have read any version of the ledger write the live orders.
func (w *walk) order(s state, i int) {
	n := s.nodes[i]
	sh := w.shadows.all[n.shadow]
	for _, slot := range w.had(s, i) {
		write := func(op uint8, name string, orders func() (protocol.Orders, error)) {
			next, ok := w.once(step{op, uint8(i), n.shadow, uint16(slot.Attempt)}, func() (uint16, error) {
				o, err := orders()
				return w.shadows.number(protocol.Shadow{Node: sh.Node, UID: sh.UID, Orders: o, Report: sh.Report}), err
			})
			if ok {
				w.follow(s.put(i, w.wrote(n, next)), "%s n%d a%d", name, i, slot.Attempt)
			}
		}
		write(opGrant, "grant", func() (protocol.Orders, error) { return sh.Give(slot, "v1", false) })
		write(opRevoke, "revoke", func() (protocol.Orders, error) { return sh.Revoke(slot.Attempt) })
		if w.o.Phases {
			write(opGo, "proceed", func() (protocol.Orders, error) { return sh.Go(slot.Attempt) })
			write(opStop, "undo", func() (protocol.Orders, error) { return sh.Stop(slot.Attempt) })
		}
	}
}

const (
	opGo = iota + 100
	opStop
	opPhase
)

// lose deletes and creates shadows. A controller that creates one has read the ledger after it saw that there is none.
func (w *walk) lose(s state, i int) {
	n := s.nodes[i]
	if n.shadow != missing {
		if int(s.lost) < w.o.Losses && (w.o.Hand || w.o.Without == Finalizer || w.shadows.all[n.shadow].Removable()) {
			n.shadow = missing
			s.lost++
			w.follow(w.stored(s.put(i, n), s.ledger), "delete n%d", i)
		}
		return
	}
	for _, v := range w.creatable(n, i) {
		w.follow(s.put(i, w.wrote(n, v)), "create n%d with the mark %d", i, w.shadows.all[v].Orders.Revoked)
	}
}

// created is the shadow that a controller makes that has read the ledger.
func (w *walk) created(i int, ledger uint16) uint16 {
	next, _ := w.once(step{opCreate, uint8(i), ledger, 0}, func() (uint16, error) {
		l := w.ledgers.all[ledger]
		if w.o.Without == EpochMark {
			l.Epoch = 0
		}
		sh := protocol.NewShadow(nodeName(i), nodeName(i), l)
		sh.Report.Known = w.o.Without == Finalizer
		return w.shadows.number(sh), nil
	})
	return next
}

// placed are the keys that a node's slot counts for.
func (w *walk) placed(node string) []string {
	for i := range w.o.Nodes {
		if w.o.PerZone > 0 && nodeName(i) == node {
			return []string{zoneOf(i)}
		}
	}
	return nil
}

// A closer is somebody who closes the ledger and opens it again.
type closer struct {
	protocol.Closure
	resume string // the name of the move
}

func (o *Options) closers() (all []closer) {
	if o.Abort {
		all = append(all, closer{protocol.Closure{Request: abortRequest}, "resume"})
	}
	if o.Pause {
		all = append(all, closer{protocol.Closure{Scope: rolloutUID, Request: pauseRequest}, "continue"})
	}
	return all
}

// closing aborts, pauses, acknowledges and resumes.
func (w *walk) closing(s state) {
	l := w.ledgers.all[s.ledger]
	for _, c := range w.closers {
		if !slices.Contains(l.Closures, c.Closure) {
			w.follow(w.stored(s, w.ledgers.number(l.Close(c.Closure))), "%s", c.Request)
			continue
		}
		next := w.stored(s, w.ledgers.number(l.Open(c.Scope, c.Request)))
		next.acked = s.acked && slices.ContainsFunc(w.closers, func(o closer) bool { return o != c && slices.Contains(l.Closures, o.Closure) })
		w.follow(next, "%s", c.resume)
	}
	if l.ClosedFor(rolloutUID) != nil && !s.acked && w.acknowledged(s, l) {
		s.acked = true
		w.follow(s, "acknowledge")
	}
}

// acknowledged asks with the versions of the shadows, of all that somebody may read, that say yes the soonest.
func (w *walk) acknowledged(s state, l protocol.Ledger) bool {
	if w.o.Without == Revocation {
		return true
	}
	scope := ""
	if l.ClosedFor(scope) == nil {
		scope = rolloutUID
	}
	ok, _ := protocol.Acknowledged(l, scope, func(uid string) (sh protocol.Shadow, found bool) {
		k := l.Slot(uid).Attempt
		for i, n := range s.nodes {
			if nodeName(i) != uid {
				continue
			}
			for _, v := range w.versions(n, i, opAcknowledge, k) {
				if old := w.shadows.all[v]; !found || old.Orders.Revoked >= k || old.Report.Attempt >= k {
					sh, found = old, true
				}
			}
		}
		return sh, found
	})
	return ok
}
