// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// depart takes a node that was admitted to the point from which only its end is of interest: what [Plan] would decide on the way is known, as long as
// all goes well. If not, there is something for the next plan to decide on.
func (w *simWorld) depart(p *plan, m *member) (again bool, err error) {
	n := m.node
	w.turn(p, n, false)
	sh := *n.Shadow
	slot := p.ledger.Slot(n.UID)
	if sh.Orders, err = sh.Give(*slot, p.next(m).Ref().String(), false); err != nil {
		return false, simError(n, err)
	}
	n.Shadow = &sh
	if err := w.answer(n, protocol.EventCommit); err != nil {
		return false, err
	}
	if n.Drain.Blocked != "" && p.next(m).class() == Intrusive {
		return true, nil
	}
	n.Drain = Drain{Empty: true}
	if err := w.order(n, func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Go(slot.Attempt) }); err != nil {
		return false, err
	}
	return false, w.apply(n, w.now.Add(w.cycle))
}

// steer does what was decided on a slot, and reports whether that is something for the next plan to decide on at the same moment.
func (w *simWorld) steer(p *plan, f *flight) (changed bool, err error) {
	if f.do == protocol.EventGone {
		w.end(f.slot.UID)
		w.snapshot.Ledger, err = w.snapshot.Ledger.Gone(f.slot.UID)
		return true, err
	}
	if f.member < 0 || p.nodes[f.member].node.Shadow == nil {
		return false, nil
	}
	n := p.nodes[f.member].node
	if f.do != "" {
		return w.command(p, f, n)
	}
	return w.moves(f, n)
}

// moves is what a node with a slot does of which nothing was decided.
func (w *simWorld) moves(f *flight, n *Node) (changed bool, err error) {
	switch {
	case f.state == protocol.Committed && f.cordon && !n.Drain.Empty && (n.Drain.Blocked == "" || f.force):
		w.held[n.UID] = n.Drain.Blocked != ""
		n.Drain = Drain{Empty: true}
		return true, nil
	case f.slot.State == protocol.SlotSuspect:
		return false, nil // it is silent
	case f.state == protocol.Granted, f.state == protocol.Retrying && n.Shadow.Open() && n.Shadow.Report.Phase == protocol.PhaseFailedBroken:
		return true, w.answer(n, protocol.EventCommit)
	case f.state == protocol.Undoing:
		return true, w.answer(n, protocol.EventUndone)
	case f.state == protocol.Proceeding:
		return false, w.apply(n, w.due(n))
	case f.state == protocol.Applying, f.state == protocol.Verifying, f.state == protocol.Done && f.slot.State == "":
		if _, known := w.ends[n.UID]; !known {
			w.ends[n.UID] = w.due(n)
		}
	}
	return false, nil
}

// command gives an order to a node.
func (w *simWorld) command(p *plan, f *flight, n *Node) (bool, error) {
	var orders func(protocol.Shadow) (protocol.Orders, error)
	switch k := f.slot.Attempt; f.do {
	case protocol.EventGrant:
		orders = func(sh protocol.Shadow) (protocol.Orders, error) {
			return sh.Give(f.slot, f.revision.Ref().String(), f.revert)
		}
	case protocol.EventRevoke:
		orders = func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Revoke(k) }
	case protocol.EventProceed:
		orders = func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Go(k) }
	case protocol.EventUndo:
		orders = func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Stop(k) }
	case protocol.EventRetry:
		w.turn(p, n, true)
		return true, nil
	default:
		return true, nil
	}
	return true, w.order(n, orders)
}

// order writes orders.
func (w *simWorld) order(n *Node, orders func(protocol.Shadow) (protocol.Orders, error)) error {
	sh := *n.Shadow
	o, err := orders(sh)
	if err != nil {
		return simError(n, err)
	}
	sh.Orders, n.Shadow = o, &sh
	return nil
}

// answer writes what the agent reports.
func (w *simWorld) answer(n *Node, e protocol.Event) error {
	sh := *n.Shadow
	r, err := sh.Answer(e)
	if err != nil {
		return simError(n, err)
	}
	sh.Report, n.Shadow = r, &sh
	return nil
}

// apply begins to apply, up to the end.
func (w *simWorld) apply(n *Node, end time.Time) error {
	w.ends[n.UID] = end
	return w.answer(n, protocol.EventApply)
}

// due is when an attempt ends: it takes as long as others from its begin, or from where its drain was no longer held up.
func (w *simWorld) due(n *Node) time.Time {
	begin := w.now
	if i, ok := w.turns[n.UID]; ok && !w.held[n.UID] {
		begin = w.course.Turns[i].Begin
	}
	if end := begin.Add(w.cycle); end.After(w.now) {
		return end
	}
	return w.now
}

func simError(n *Node, err error) error {
	return fmt.Errorf("simulating node %q: %w", n.Name, err)
}
