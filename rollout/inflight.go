// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A flight is a slot of this rollout.
type flight struct {
	slot     protocol.Slot
	member   int32 // -1 if there is no such node
	sh       *protocol.Shadow
	state    protocol.State
	do       protocol.Event
	revision *Revision
	revert   bool
	cordon   bool
	uncordon bool
	force    bool
	why      *Why
}

// observe looks at every slot of the rollout: how far it is, what has ended, what has taken too long.
func (p *plan) observe() {
	slots := p.snapshot.Ledger.Slots
	p.flights = reuse(&p.mem.flights, len(slots))[:0]
	for i := range slots {
		s := slots[i]
		if s.Rollout != p.policy.UID || s.UID == p.acknowledged {
			continue
		}
		f := flight{slot: s, member: p.byUID[s.UID]}
		if now := p.current(i); now != nil {
			f.slot = *now
		}
		if f.member >= 0 {
			m := &p.nodes[f.member]
			m.flight = int32(len(p.flights))
			if f.sh = m.node.Shadow; f.sh == nil {
				f.sh = &protocol.Shadow{Node: s.Node, UID: s.UID}
			}
			f.state = protocol.StateOf(protocol.Ledger{Slots: slots[i : i+1]}, *f.sh)
		}
		p.flights = append(p.flights, f)
	}
	for i := range p.flights {
		p.see(&p.flights[i])
	}
	p.missing()
}

// current is what has become of a slot of the snapshot by what was asked for; it has kept its place, unless one was given up.
func (p *plan) current(i int) *protocol.Slot {
	uid := p.snapshot.Ledger.Slots[i].UID
	if i < len(p.ledger.Slots) && p.ledger.Slots[i].UID == uid {
		return &p.ledger.Slots[i]
	}
	return p.ledger.Slot(uid)
}

func (p *plan) see(f *flight) {
	if f.member < 0 {
		f.state, f.do = protocol.Gone, protocol.EventGone
		f.why = &Why{Reason: ReasonLost, Message: fmt.Sprintf("there is no Node %q with UID %q any more", f.slot.Node, f.slot.UID)}
		return
	}
	old, known := p.progress.Nodes[f.slot.UID]
	e := p.track(f, old)
	p.settle(f, &e)
	switch {
	case f.do == protocol.EventRelease:
		p.land(f, e)
	case !known || e != old:
		p.remember(f.slot.UID, e)
	}
}

// track remembers since when the slot is in its state.
func (p *plan) track(f *flight, e NodeProgress) NodeProgress {
	e.Node = f.slot.Node
	switch {
	case e.Attempt != f.slot.Attempt:
		if e.Attempt == 0 || !e.flying() {
			e.Admitted, e.Stage = p.now, p.progress.Stage
		}
		e.Critical = p.isCritical(p.nodes[f.member].node)
		e.Attempt, e.State, e.Since, e.Result = f.slot.Attempt, f.state, p.now, ""
	case e.State != f.state:
		e.State, e.Since = f.state, p.now
	}
	return e
}

// settle acts on what is a fact by now.
func (p *plan) settle(f *flight, e *NodeProgress) {
	f.uncordon = f.state != protocol.FailedBroken && f.state != protocol.Unknown && f.state != protocol.Retrying
	switch f.state {
	case protocol.Done:
		p.settleDone(f, e)
	case protocol.FailedClean:
		p.end(f, e, FailedClean)
	case protocol.Refused:
		p.end(f, e, Refused)
	case protocol.Revoked:
		p.end(f, e, Deferred)
	case protocol.Retrying:
		if f.sh.Orders.Revoked >= f.slot.Attempt {
			p.conclude(f, e, Deferred)
		}
	case protocol.Undone:
		p.settleUndone(f, e)
	case protocol.FailedBroken:
		p.mark(f, protocol.EventBreak, protocol.SlotBroken, "the agent says that the node is broken")
		p.conclude(f, e, FailedBroken)
	case protocol.Undoing, protocol.Proceeding, protocol.Applying, protocol.Verifying, protocol.Unknown:
		if within := p.within(f.state); f.slot.State == "" && p.passed(e.Since, within) {
			p.mark(f, protocol.EventSuspect, protocol.SlotSuspect, fmt.Sprintf("the node is %s for more than %s", f.state, within))
			p.conclude(f, e, Suspected)
		}
	}
}

// settleUndone keeps the slot of a node that an attempt before has broken until it is well again.
func (p *plan) settleUndone(f *flight, e *NodeProgress) {
	if isBad(f.slot.State) && !p.well(f.member) {
		f.why = &Why{Reason: ReasonUnhealthy, Message: "the attempt before has broken the node, the last one was undone: " + p.illness(f.member)}
		return
	}
	p.end(f, e, Undone)
}

// within is the deadline of a state.
func (p *plan) within(s protocol.State) time.Duration {
	switch s {
	case protocol.Committed:
		return orDefault(p.policy.DrainWithin, defaultDrain)
	case protocol.Proceeding, protocol.Applying, protocol.Unknown:
		return orDefault(p.policy.ApplyWithin, defaultApply)
	case protocol.Verifying, protocol.Done:
		return orDefault(p.policy.VerifyWithin, defaultVerify)
	}
	return orDefault(p.policy.CommitWithin, defaultCommit)
}

// passed reports whether a deadline has passed, and has Plan called again when it has.
func (p *plan) passed(since time.Time, within time.Duration) bool {
	left := since.Add(within).Sub(p.now)
	p.again(left)
	return left <= 0
}

// end remembers the end of an attempt and frees its slot.
func (p *plan) end(f *flight, e *NodeProgress, r Result) {
	p.conclude(f, e, r)
	if err := p.ledger.Release(*f.sh); err != nil {
		f.why = &Why{Reason: ReasonInFlight, Message: err.Error()}
		return
	}
	f.do = protocol.EventRelease
	f.why = &Why{Reason: ReasonInFlight, Message: fmt.Sprintf("attempt %d has ended: %s", f.slot.Attempt, r)}
}

// mark says in the ledger what is thought of a slot.
func (p *plan) mark(f *flight, event protocol.Event, state protocol.SlotState, message string) {
	next, err := p.ledger.Mark(f.slot.UID, state)
	if err != nil {
		return // it is thought worse of already
	}
	p.ledger, f.do, f.slot.State = next.Draft(), event, state
	reason := reasonFailing
	if event == protocol.EventSuspect {
		reason = ReasonDeadline
	}
	f.why = &Why{Reason: reason, Message: message}
}

// settleDone lets a node go when its work has come back. If it does not in time, the rollout waits for somebody's verdict.
func (p *plan) settleDone(f *flight, e *NodeProgress) {
	n := p.nodes[f.member].node
	if f.brings().Is(n.Runs) && p.well(f.member) {
		p.end(f, e, Succeeded)
		return
	}
	illness := p.illness(f.member)
	if !f.brings().Is(n.Runs) {
		illness = fmt.Sprintf("the node runs %q", n.Runs)
	}
	message := fmt.Sprintf("%q is on the node, and its work has not come back: %s", f.sh.Report.Revision, illness)
	f.why = &Why{Reason: ReasonUnhealthy, Message: message, After: n.Health.RetryAfter}
	p.again(n.Health.RetryAfter)
	if e.Result == "" && p.passed(e.Since, p.within(protocol.Done)) {
		p.mark(f, protocol.EventBreak, protocol.SlotBroken, message)
		counts := p.counts(f)
		p.conclude(f, e, FailedBroken)
		if counts {
			p.freeze("work", fmt.Sprintf("node %q: %s", f.slot.Node, message))
		}
	}
}

// well reports whether the node is there, and its health is known to be good.
func (p *plan) well(i int32) bool {
	n := p.nodes[i].node
	return n.Away == "" && n.Health.Answer == Allow
}

func (p *plan) illness(i int32) string {
	n := p.nodes[i].node
	switch {
	case n.Away != "":
		return n.Away
	case n.Health.Answer == Unknown:
		return "its health is not known"
	}
	return n.Health.text()
}

// text says what a verdict says, for people.
func (v *Verdict) text() string {
	text := cmp.Or(v.Message, v.Reason, string(v.Answer), "its answer is not known")
	if v.From == "" {
		return text
	}
	return v.From + ": " + text
}
