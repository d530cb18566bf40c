// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// keptGone is how many outcomes of nodes that are gone are remembered.
const keptGone = 100

// outcome adds the outcome of a node. There is one for each: the first failure, whatever comes after it, and the success of a node that has never failed.
func (p *plan) outcome(f *flight, e NodeProgress) {
	uid := f.slot.UID
	if i := p.outcomeOf(uid); i >= 0 {
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

// outcomeOf is the number of a node's outcome; -1 for none.
func (p *plan) outcomeOf(uid string) int {
	if p.fallen[uid] {
		return -1 // it was withdrawn, with those of all others that have fallen back
	}
	return slices.IndexFunc(p.progress.Outcomes, func(o Outcome) bool { return o.UID == uid })
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

// retire forgets the oldest outcomes of nodes that are gone: a rollout goes on for as long as nodes come and go. The newest stay, so that a revision that
// breaks what joins is noticed though the nodes are replaced, and so do all failures until all stages were passed: detectors end those. What somebody has
// borrowed a slot for stays as long as the slot: it would count again.
func (p *plan) retire() {
	more := len(p.progress.Outcomes) - len(p.nodes) - keptGone
	if more <= 0 || p.before != nil {
		return
	}
	passed := p.progress.Stage >= len(p.stages)
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
		if more <= 0 || here[o.UID] || !passed && o.Result != Succeeded {
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
	succeeded := p.succeeded()
	for i := range p.nodes {
		if p.relapsed(&p.nodes[i], succeeded) {
			fallen = append(fallen, int32(i))
		}
	}
	if len(fallen) == 0 {
		return
	}
	uids := make(map[string]bool, len(fallen))
	for _, i := range fallen {
		f, _ := p.fall(i)
		uids[f.slot.UID] = p.counts(f)
	}
	p.withdraw(func(o *Outcome) bool { return uids[o.UID] && !detectFailed(o.Result) })
	for i := range p.progress.Outcomes {
		delete(uids, p.progress.Outcomes[i].UID) // it has failed before, and that stays
	}
	p.fallen = uids
	for _, i := range fallen {
		f, e := p.fall(i)
		p.conclude(f, &e, FellBack)
		p.remember(f.slot.UID, e)
	}
	p.fallen = nil
}

// fall is the end of a node's success.
func (p *plan) fall(i int32) (*flight, NodeProgress) {
	m := &p.nodes[i]
	e := p.progress.Nodes[m.node.UID]
	if e.Attempts > 0 && p.now.Sub(e.Since) >= healed {
		e.Attempts = 0
	}
	e.Node, e.Attempt, e.State, e.Since = m.node.Name, m.node.Shadow.Report.Attempt, protocol.Resting, p.now
	e.Stage, e.Critical, e.Recovered, e.Result = min(p.progress.Stage, len(p.stages)-1), p.isCritical(m.node), false, ""
	sh := m.shadow()
	return &flight{slot: protocol.Slot{Node: m.node.Name, UID: m.node.UID, Attempt: e.Attempt}, member: i, sh: &sh}, e
}

// succeeded are the UIDs of the nodes whose success is an outcome. It is asked for once for all nodes.
func (p *plan) succeeded() func(uid string) bool {
	var uids map[string]bool
	return func(uid string) bool {
		if uids == nil {
			uids = make(map[string]bool, len(p.progress.Outcomes))
			for i := range p.progress.Outcomes {
				if o := &p.progress.Outcomes[i]; o.Result == Succeeded {
					uids[o.UID] = true
				}
			}
		}
		return uids[uid]
	}
}

// relapsed reports whether a node has fallen back from the target. Its record and what it runs are of one moment, so that an old one proves nothing else.
func (p *plan) relapsed(m *member, succeeded func(uid string) bool) bool {
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
	return succeeded(m.node.UID)
}
