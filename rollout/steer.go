// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strconv"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// steer decides what each slot needs next, of which nothing has ended.
func (p *plan) steer() {
	halt := p.halt()
	usual := sentences{whys: make([]Why, 0, len(p.flights)), ends: p.mem.ends[:0], text: p.mem.text[:0]}
	for i := range p.flights {
		f := &p.flights[i]
		if f.do != "" {
			continue
		}
		switch f.state {
		case protocol.Admitted, protocol.Granted, protocol.Retrying:
			p.uncommitted(f, halt)
		case protocol.Committed:
			p.committed(f, halt)
		case protocol.Proceeding, protocol.Applying, protocol.FailedBroken:
			f.cordon = p.revisionOf(f).class() == Intrusive
		}
		if f.why == nil {
			f.why = p.flying(f, &usual)
		}
	}
	usual.end()
	p.mem.ends, p.mem.text = usual.ends, usual.text
}

// sentences are what is said of each slot in each pass: they share their memory. Those of whys begin where the one before ends.
type sentences struct {
	whys []Why // has room for all
	ends []int32
	text []byte
}

// end gives each its message.
func (s *sentences) end() {
	all, from := string(s.text), int32(0)
	for i, end := range s.ends {
		s.whys[i].Message, from = all[from:end], end
	}
}

// flying says how far a slot is. Its message comes when all are said.
func (p *plan) flying(f *flight, s *sentences) *Why {
	since := p.progress.Nodes[f.slot.UID].Since
	s.text = strconv.AppendInt(append(s.text, "attempt "...), int64(f.slot.Attempt), 10)
	s.text = append(append(append(s.text, " is "...), f.state...), " since "...)
	s.text = since.UTC().AppendFormat(s.text, time.RFC3339)
	if f.slot.State != "" {
		s.text = append(append(s.text, ", the slot is "...), f.slot.State...)
	}
	why := Why{Reason: ReasonInFlight}
	if left := since.Add(p.within(f.state)).Sub(p.now); left > 0 && f.slot.State == "" {
		why.After = left
	}
	s.whys, s.ends = append(s.whys, why), append(s.ends, int32(len(s.text)))
	return &s.whys[len(s.whys)-1]
}

// uncommitted grants an attempt, or takes it back.
func (p *plan) uncommitted(f *flight, halt *Why) {
	k, o := f.slot.Attempt, f.sh.Orders
	f.cordon = f.state == protocol.Retrying && p.revisionOf(f).class() == Intrusive
	if o.Revoked >= k {
		return // a broken node whose last attempt was revoked: see retry
	}
	if why := p.takeBack(f, halt); why != nil {
		f.do, f.why = protocol.EventRevoke, why
		return
	}
	if o.Grant >= k {
		return
	}
	f.revision, f.revert = p.due(f)
	if f.revision == nil {
		f.do, f.why = protocol.EventRevoke, &Why{Reason: ReasonGivenUp, Message: "there is no revision left to try on the node"}
		return
	}
	f.do, f.why = protocol.EventGrant, &Why{Reason: reasonNextInOrder, Message: fmt.Sprintf("attempt %d brings %q", k, f.revision.Name)}
}

// takeBack says why an attempt that the agent has not answered must not be committed any more, or nil.
func (p *plan) takeBack(f *flight, halt *Why) *Why {
	m := &p.nodes[f.member]
	if halt != nil {
		return halt
	}
	if m.group < 0 {
		return &Why{Reason: ReasonLeaving, Message: "the node is not selected any more"}
	}
	if f.slot.State == "" && p.targets[m.group].target.Ref().Is(m.node.Runs) {
		return &Why{Reason: ReasonUpToDate, Message: "the node runs its revision already: who admitted it has seen an old record"}
	}
	if len(p.policy.Windows) > 0 {
		until, open := openUntil(p.policy.Windows, p.now)
		if !open {
			return &Why{Reason: reasonWindow, Message: "the window has closed before the agent has answered"}
		}
		p.again(until.Sub(p.now))
	}
	if granted := protocol.ParseRevision(f.sh.Orders.Revision); f.sh.Orders.Grant >= f.slot.Attempt && !p.wanted(m, granted) {
		return &Why{Reason: reasonSuperseded, Message: fmt.Sprintf("the attempt would bring %q, which is not wanted any more", granted)}
	}
	if e := p.progress.Nodes[f.slot.UID]; p.passed(e.Since, p.within(f.state)) {
		return &Why{Reason: ReasonDeadline, Message: fmt.Sprintf("the agent has not answered within %s", p.within(f.state))}
	}
	return nil
}

// wanted reports whether a revision is one that the node should get now.
func (p *plan) wanted(m *member, r protocol.Revision) bool {
	a := p.targets[m.group]
	return r == a.target.Ref() || a.completed != nil && r == a.completed.Ref()
}

// due is the revision that the attempt of a slot is to bring, and whether that is the way back.
func (p *plan) due(f *flight) (*Revision, bool) {
	m := &p.nodes[f.member]
	if m.group < 0 {
		return nil, false
	}
	if p.progress.Nodes[f.slot.UID].Attempts < p.attempts() {
		return p.next(m), false
	}
	return p.wayBack(m), true
}

// wayBack is what a node gets that the target has broken for good, or nil.
func (p *plan) wayBack(m *member) *Revision {
	a := p.targets[m.group]
	if a.target.Irreversible || m.node.Irreversible || a.completed == nil || a.completed.Name == a.target.Name {
		return nil
	}
	return a.completed
}

// brings is what the attempt that the agent has answered brings, as it was ordered then.
func (f *flight) brings() protocol.Revision { return protocol.ParseRevision(f.sh.Report.Revision) }

// ordered is what the attempt of the slot brings: by the agent's answer, or by the order where it has not answered.
func (f *flight) ordered() protocol.Revision {
	if f.sh.Report.Attempt < f.slot.Attempt {
		return protocol.ParseRevision(f.sh.Orders.Revision)
	}
	return f.brings()
}

// revisionOf is the revision that the attempt of a slot brings, as far as it is known: it says what its node's disruption is.
func (p *plan) revisionOf(f *flight) *Revision {
	r, aims := f.ordered(), p.targets
	if m := &p.nodes[f.member]; m.group >= 0 { // otherwise it was selected when it was begun
		aims = aims[m.group : m.group+1]
	}
	for _, a := range aims {
		if r == a.target.Ref() {
			return a.target
		}
		if a.completed != nil && r == a.completed.Ref() {
			return a.completed
		}
	}
	return &Revision{Name: r.Name, Digest: r.Digest} // of another time: what it disturbs is not known, so it is taken to be intrusive
}

// committed brings a node whose agent waits to the point at which it may begin, or has it give up.
func (p *plan) committed(f *flight, halt *Why) {
	m, intrusive := &p.nodes[f.member], p.revisionOf(f).class() == Intrusive
	f.cordon, f.uncordon = intrusive, !intrusive
	if why := p.giveUp(f, m, halt); why != nil {
		f.do, f.why = protocol.EventUndo, why
		return
	}
	drain := m.node.Drain
	if !intrusive || drain.Empty {
		f.do, f.why = protocol.EventProceed, &Why{Reason: ReasonInFlight, Message: fmt.Sprintf("attempt %d may begin", f.slot.Attempt)}
		return
	}
	late := p.passed(p.progress.Nodes[f.slot.UID].Since, p.within(protocol.Committed))
	if late {
		p.stuck(f, drain)
		return
	}
	if drain.Blocked != "" {
		f.why = &Why{Reason: ReasonBlocked, Message: "the node is being drained: " + drain.Blocked}
	}
}

// giveUp says why an attempt that was committed should not begin, or nil. A node that is broken already is not better off without.
func (p *plan) giveUp(f *flight, m *member, halt *Why) *Why {
	r := f.brings()
	switch {
	case isBad(f.slot.State):
		return nil
	case halt != nil && (halt.Reason == reasonAborted || halt.Reason == reasonFrozen):
		return halt
	case m.group < 0:
		return &Why{Reason: ReasonLeaving, Message: "the node is not selected any more"}
	case !p.wanted(m, r):
		return &Why{Reason: reasonSuperseded, Message: fmt.Sprintf("the attempt would bring %q, which is not wanted any more", r)}
	}
	return nil
}

// stuck does what the policy says with a drain that takes too long.
func (p *plan) stuck(f *flight, drain Drain) {
	culprit := drain.Blocked
	if culprit == "" {
		culprit = "what is in the way is not known"
	}
	f.why = &Why{Reason: ReasonBlocked, Message: fmt.Sprintf("the node is not empty after %s: %s", p.within(protocol.Committed), culprit)}
	switch {
	case p.policy.StuckDrain == ForceDrain:
		f.force = true
	case p.policy.StuckDrain == UndoDrain && !isBad(f.slot.State):
		f.do = protocol.EventUndo
	}
}
