// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// act carries out one decision, as far as that is more than what the ledger says. It reports whether something has changed that Plan looks at.
func (p *pass) act(i int, d rollout.Decision) (moved bool) {
	n := p.find(d.UID)
	if n == nil {
		return false
	}
	slot := p.ledger.Slot(d.UID)
	if slot != nil && slot.Rollout != p.rollouts[i].Policy.UID {
		return false
	}
	if slot != nil && !p.marked(i, n, slot, d) {
		return false
	}
	switch {
	case slot != nil && d.Cordon && d.Do != protocol.EventUndo:
		var ready bool
		if moved, ready = p.cordon(n, slot, d); !ready {
			return moved
		}
	case d.Uncordon:
		p.open(n)
	}
	o, due, err := ordersOf(n, slot, d)
	if err != nil {
		p.note("controller: ordering node %q: %s", err, n.Name, d.Do)
	}
	if due && err == nil && p.order(n, o, d.Do) {
		moved = true
	}
	return moved
}

// ordersOf are the orders that a decision asks for, on the version of the shadow that was read. Most decisions ask for none.
func ordersOf(n *nodeView, slot *protocol.Slot, d rollout.Decision) (o protocol.Orders, due bool, err error) {
	if n.shadow == nil || slot == nil && d.Do != protocol.EventStage {
		return o, false, nil
	}
	switch sh := n.shadow.Shadow; d.Do {
	case protocol.EventStage:
		o, err = sh.Prefetch(d.Revision.Ref().String())
	case protocol.EventGrant:
		o, err = sh.Give(*slot, d.Revision.Ref().String(), d.Revert)
	case protocol.EventRevoke:
		o, err = sh.Revoke(slot.Attempt)
	case protocol.EventProceed:
		o, err = sh.Go(slot.Attempt)
	case protocol.EventUndo:
		o, err = sh.Stop(slot.Attempt)
	default:
		return o, false, nil
	}
	return o, true, err
}

// order writes orders on the version of the shadow that was read, and reports whether there is another one now.
func (p *pass) order(n *nodeView, o protocol.Orders, why protocol.Event) bool {
	var next Shadow
	err := p.write(func(ctx context.Context) (err error) { next, err = p.c.o.Shadows.Order(ctx, *n.shadow, o); return err })
	if err != nil {
		p.note("controller: ordering node %q", err, n.Name)
		return why == protocol.EventRevoke && p.reread(n)
	}
	n.shadow = &next
	p.snapshot[p.byUID[n.UID]].Shadow = &next.Shadow
	return true
}

// reread takes the shadow of a node as the API server has it: the agent has been first, and until it is known with what nobody can be told that the node is not
// begun any more. One whose attempt has ended is left to the next pass, which gives the node back before it frees the slot.
func (p *pass) reread(n *nodeView) bool {
	var sh Shadow
	err := p.call(func(ctx context.Context) (err error) { sh, err = p.c.o.Shadows.Get(ctx, n.Name); return err })
	if err != nil {
		p.note("controller: looking at the shadow of node %q", err, n.Name)
	}
	later := max(sh.Orders.Grant, sh.Report.Attempt) > p.ledger.Epoch // then the ledger that was read is an old one
	if _, ended := rewind(sh.Shadow); err != nil || ended || later || sh.UID != n.UID {
		p.again(soon)
		return false
	}
	n.shadow = &sh
	s := &p.snapshot[p.byUID[n.UID]]
	s.Shadow, s.Runs, s.Irreversible = &sh.Shadow, sh.Runs, sh.Irreversible
	return true
}

// cordon keeps the node of a slot cordoned, and drains it if its agent waits for that. ready says that what else was decided may be done,
// changed that the drain has come to its end or hangs on something else than before.
func (p *pass) cordon(n *nodeView, slot *protocol.Slot, d rollout.Decision) (changed, ready bool) {
	if p.c.o.Drainer == nil {
		return false, true
	}
	drains := d.State == protocol.Committed && d.Do != protocol.EventProceed
	closed := !n.held || d.State == protocol.Committed && n.attempt != slot.Attempt
	if closed && !p.closes(n, slot, d, drains) {
		return false, false
	}
	if !drains {
		return false, true
	}
	sure := closed || p.c.mind.drains[n.UID].attempt == slot.Attempt // that the node waits under its cordon
	if !sure && p.still(n, slot.Attempt) != protocol.Committed {
		p.again(soon)
		return false, false
	}
	return p.drain(n, slot.Attempt, d.Force), true
}

// closes cordons a node that seems to lack the cordon of its attempt, and makes sure that the node is in the same state after that. Where the list of
// Nodes is only behind a cordon that was followed by such a look, nothing is written, and no further look is needed. A Node that seems to have been given
// back is looked at before: if it was, what is behind is the list of shadows.
func (p *pass) closes(n *nodeView, slot *protocol.Slot, d rollout.Decision, drains bool) bool {
	known := p.c.mind.drains[n.UID].attempt == slot.Attempt
	anew, done, over := p.close(n, slot, drains, false)
	if over {
		if !p.remains(n, slot, d) {
			return false
		}
		anew, done, _ = p.close(n, slot, drains, true)
	}
	if known && done && !anew {
		return true
	}
	delete(p.c.mind.drains, n.UID) // what is known is of another cordon
	if !done {
		return false
	}
	return p.remains(n, slot, d)
}

// remains reports whether the node of a slot is still in the state that was decided on.
func (p *pass) remains(n *nodeView, slot *protocol.Slot, d rollout.Decision) bool {
	if p.still(n, slot.Attempt) == d.State {
		return true
	}
	p.again(soon)
	return false
}

// close cordons the node of a slot, which is to be drained at once or not. If the drainer takes it along, the mark comes with the cordon. anew is false
// if the cordon was there already, by what the drainer knows of the Node. over means that the Node seems to have been given back after this attempt:
// then it is not cordoned, unless it is sure that this is not so.
func (p *pass) close(n *nodeView, s *protocol.Slot, drains, sure bool) (anew, done, over bool) {
	want, ok := p.wants(n, s)
	if !ok {
		return false, false, false
	}
	is := n.mark
	err := p.write(func(ctx context.Context) (err error) {
		if k, ok := p.c.o.Drainer.(MarkingDrainer); ok {
			done, err = k.CordonWith(ctx, n.Name, n.UID, int64(s.Attempt), drains, func(annotations map[string]string) (change map[string]*string, ok bool) {
				m := markOf(annotations)
				_, held := p.c.o.Drainer.Held(annotations)
				if over = !sure && !held && m.isOver(annotations, s.Attempt); over {
					return nil, false
				}
				anew = true
				is, change = m.overtake(annotations, want)
				return change, true
			})
			return err
		}
		anew = true // it does not say
		done, err = p.c.o.Drainer.Cordon(ctx, n.Name, n.UID, int64(s.Attempt), drains)
		return err
	})
	if err != nil {
		p.note("controller: cordoning node %q", err, n.Name)
	}
	if err != nil || !done {
		p.again(soon)
		return anew, false, over && err == nil
	}
	n.held, n.attempt, n.mark = true, s.Attempt, is
	return anew, true, false
}

// still asks the API server in which state a node is that was just cordoned for an attempt. From the commit to the end of the attempt the node has
// its slot, and it is not freed before the cordon was taken off: so what follows on this answer happens under a slot. A cordon that came too
// late is taken off at once.
func (p *pass) still(n *nodeView, k protocol.Attempt) protocol.State {
	var sh Shadow
	err := p.call(func(ctx context.Context) (err error) { sh, err = p.c.o.Shadows.Get(ctx, n.Name); return err })
	if err != nil {
		p.note("controller: looking at the shadow of node %q after its cordon", err, n.Name)
		return ""
	}
	if through := past(sh.Shadow); sh.UID == n.UID && through >= k {
		p.release(n, through)
	}
	if sh.UID != n.UID || sh.Report.Attempt > k {
		return ""
	}
	return protocol.StateOf(protocol.Ledger{Slots: []protocol.Slot{{UID: n.UID, Attempt: k}}}, sh.Shadow)
}

// drain takes work off a node, and reports whether it has found it empty.
func (p *pass) drain(n *nodeView, k protocol.Attempt, force bool) bool {
	var is rollout.Drain
	var after time.Duration
	err := p.call(func(ctx context.Context) (err error) {
		is.Empty, is.Blocked, after, err = p.c.o.Drainer.Drain(ctx, n.Name, n.UID, int64(k), force)
		return err
	})
	p.again(after)
	if err != nil {
		p.note("controller: draining node %q", err, n.Name)
		return false
	}
	was := p.c.mind.drains[n.UID]
	now := drained{k, is}
	p.c.mind.drains[n.UID] = now
	p.snapshot[p.byUID[n.UID]].Drain = is
	if was != now && is.Blocked != was.drain.Blocked {
		p.again(soon) // to say so
	}
	return was != now && is.Empty
}

// past is the last attempt for which nobody needs the node cordoned any more, by any version of its shadow: that stays so.
func past(sh protocol.Shadow) protocol.Attempt {
	switch {
	case sh.Report.Phase.AtRest() && sh.Report.Known:
		return max(sh.Report.Attempt, sh.Orders.Revoked) // what was revoked is never committed
	case sh.Report.Phase.AtRest(), sh.Report.Phase == protocol.PhaseVerifying:
		return sh.Report.Attempt
	}
	return sh.Report.Attempt - 1
}

// open takes a cordon off that is not needed any more.
func (p *pass) open(n *nodeView) {
	if n.held && n.shadow != nil && n.attempt <= past(n.shadow.Shadow) {
		p.release(n, past(n.shadow.Shadow))
	}
}

// release takes the cordons up to an attempt off a node, and reports whether the API server has shown that they are off.
func (p *pass) release(n *nodeView, k protocol.Attempt) bool {
	if p.c.o.Drainer == nil {
		return true
	}
	done := false
	err := p.write(func(ctx context.Context) (err error) {
		done, err = p.c.o.Drainer.Release(ctx, n.Name, n.UID, int64(k))
		return err
	})
	if err != nil {
		p.note("controller: giving node %q back", err, n.Name)
	}
	if err != nil || !done {
		p.again(soon)
		return false
	}
	if n.attempt <= k {
		n.held, n.attempt = false, 0
	}
	p.c.mind.back[n.UID] = k
	return true
}

// giveBack takes the cordons off nodes whose attempt has ended, before Plan sees that it has: a slot is freed after that. A node that can't be
// given back is shown as it was just before the end, so that it keeps its slot.
func (p *pass) giveBack() {
	for i := range p.ledger.Slots {
		n := p.find(p.ledger.Slots[i].UID)
		if n == nil || n.shadow == nil {
			continue
		}
		earlier, ended := rewind(n.shadow.Shadow)
		through := past(n.shadow.Shadow)
		if ended && !p.knows(&p.ledger.Slots[i]) { // Plan is to see that there was an attempt first
			p.snapshot[p.byUID[n.UID]].Shadow = &earlier
			p.again(soon)
			continue
		}
		if !ended || !n.held && p.c.mind.back[n.UID] == through || p.release(n, through) {
			continue
		}
		if through >= p.ledger.Slots[i].Attempt { // else the slot is for what comes next
			p.snapshot[p.byUID[n.UID]].Shadow = &earlier
		}
	}
}

// knows reports whether it is remembered that a slot's node is in its attempt, unless nothing is decided for its rollout.
func (p *pass) knows(s *protocol.Slot) bool {
	for i := range p.rollouts {
		if r := &p.rollouts[i]; r.Policy.UID == s.Rollout && r.Invalid == nil {
			return r.Progress.Nodes[s.UID].Attempt == s.Attempt
		}
	}
	return true
}

// rewind is the version of a shadow before its attempt ended; false if it has not, or if nobody can have cordoned the node for it.
func rewind(sh protocol.Shadow) (protocol.Shadow, bool) {
	switch sh.Report.Phase {
	case protocol.PhaseDone:
		sh.Report.Phase = protocol.PhaseVerifying
	case protocol.PhaseFailedClean:
		sh.Report.Phase = protocol.PhaseApplying
	case protocol.PhaseUndone:
		sh.Report.Phase = protocol.PhaseCommitted
	default:
		return sh, false
	}
	return sh, true
}
