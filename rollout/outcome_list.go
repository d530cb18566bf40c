// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// keptGone is how many outcomes of nodes that are gone are remembered once all stages were passed.
const keptGone = 100

// outcome adds the outcome of a node. There is one for each: the first failure, whatever comes after it, and the success of a node that has never failed.
func (p *plan) outcome(f *flight, e NodeProgress) {
	uid := f.slot.UID
	if i := slices.IndexFunc(p.progress.Outcomes, func(o Outcome) bool { return o.UID == uid }); i >= 0 {
		if !detectFailed(e.Result) || detectFailed(p.progress.Outcomes[i].Result) {
			return
		}
		p.withdraw(func(o *Outcome) bool { return o.UID == uid })
	}
	if !p.appended {
		p.appended = true
		// Growing would make room for a quarter more.
		p.progress.Outcomes = append(make([]Outcome, 0, len(p.progress.Outcomes)+p.ending()), p.progress.Outcomes...)
	}
	p.progress.Outcomes = append(p.progress.Outcomes, Outcome{Node: f.slot.Node, UID: uid, Result: e.Result, At: p.now})
}

// withdraw takes outcomes back. The numbers of those that follow go down with it.
func (p *plan) withdraw(these func(*Outcome) bool) {
	was := p.progress.Outcomes
	kept, accepted, before := make([]Outcome, 0, len(was)+p.ending()), p.progress.Accepted, p.progress.StageFrom
	for i := range was {
		if !these(&was[i]) {
			kept = append(kept, was[i])
			continue
		}
		if i < p.progress.Accepted {
			accepted--
		}
		if i < p.progress.StageFrom {
			before--
		}
	}
	p.progress.Outcomes, p.progress.Accepted, p.progress.StageFrom, p.appended = kept, accepted, before, true
}

// retire forgets the oldest outcomes of nodes that are gone, once all stages were passed: a rollout goes on for as long as nodes come and go. The newest
// stay, so that a revision that breaks what joins is noticed though the nodes are replaced. What somebody has borrowed a slot for stays as long as the
// slot: it would count again.
func (p *plan) retire() {
	more := len(p.progress.Outcomes) - len(p.nodes) - keptGone
	if p.progress.Stage < len(p.stages) || more <= 0 || p.before != nil {
		return
	}
	here := make(map[string]bool, len(p.nodes)+len(p.ledger.Slots))
	for i := range p.nodes {
		here[p.nodes[i].node.UID] = true
	}
	for i := range p.ledger.Slots {
		s := &p.ledger.Slots[i]
		here[s.UID] = true
		if _, holder, lent := s.Borrower(); lent {
			here[holder] = true
		}
	}
	p.withdraw(func(o *Outcome) bool {
		if more <= 0 || here[o.UID] {
			return false
		}
		more--
		return true
	})
}

// relapses finds the nodes that do not run the revision any more with which they have succeeded: they went back to what they ran before, or were made anew.
// That is a failure of the node, which counts and rests as any other one, so that it is not updated again without end.
func (p *plan) relapses() {
	var fallen []int32
	for i := range p.nodes {
		if p.relapsed(&p.nodes[i]) {
			fallen = append(fallen, int32(i))
		}
	}
	for _, i := range fallen {
		m := &p.nodes[i]
		e := p.progress.Nodes[m.node.UID]
		if e.Attempts > 0 && p.now.Sub(e.Since) >= healed {
			e.Attempts = 0
		}
		e.Node, e.Attempt, e.State, e.Since = m.node.Name, m.node.Shadow.Report.Attempt, protocol.Resting, p.now
		e.Stage, e.Critical, e.Recovered, e.Result = min(p.progress.Stage, len(p.stages)-1), p.isCritical(m.node), false, ""
		sh := m.shadow()
		p.conclude(&flight{slot: protocol.Slot{Node: m.node.Name, UID: m.node.UID, Attempt: e.Attempt}, member: i, sh: &sh}, &e, FailedClean)
		p.remember(m.node.UID, e)
	}
}

// relapsed reports whether a node has fallen back from the target. Its record and what it runs are of one moment, so that an old one proves nothing else.
func (p *plan) relapsed(m *member) bool {
	if m.group < 0 || m.slotted() || m.node.Shadow == nil || m.node.Shadow.Report.Phase != protocol.PhaseDone || m.node.Runs == (protocol.Revision{}) {
		return false
	}
	target, r := p.targets[m.group].target.Ref(), &m.node.Shadow.Report
	if target.Is(m.node.Runs) || protocol.ParseRevision(r.Revision) != target {
		return false
	}
	if e, known := p.progress.Nodes[m.node.UID]; known {
		return e.Result == Succeeded && r.Attempt >= e.Attempt
	}
	return slices.ContainsFunc(p.progress.Outcomes, func(o Outcome) bool { return o.UID == m.node.UID && o.Result == Succeeded })
}
