// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belayproject/belay/rollout/protocol"
)

// prefetch lets the next nodes fetch their revision ahead.
func (p *plan) prefetch() {
	if p.policy.Prefetch == nil || p.halt() != nil {
		return
	}
	left := amount(*p.policy.Prefetch, p.sizes.selected) - p.behind()
	for _, i := range p.ordered {
		m := &p.nodes[i]
		if left <= 0 {
			return
		}
		if m.class != waiting || m.other || m.do != stepNone || p.fetching(m) {
			continue
		}
		m.do = stepStage
		left--
	}
}

// behind is how many nodes were told to fetch their revision ahead and have not done so.
func (p *plan) behind() (sum int) {
	for i := range p.nodes {
		m := &p.nodes[i]
		ahead := m.group >= 0 && m.flight < 0 && m.class != done && m.node.Shadow != nil && p.fetching(m)
		if ahead && m.node.Shadow.Report.Staged != m.node.Shadow.Orders.Stage {
			sum++
		}
	}
	return sum
}

// fetching reports whether the node was told to fetch its revision ahead.
func (p *plan) fetching(m *member) bool {
	return m.node.Shadow.Orders.Stage == p.next(m).Ref().String()
}

// decisions puts together what was decided.
func (p *plan) decisions() Decisions {
	d := Decisions{At: p.now, Ledger: p.ledger.Ledger, Caps: p.capsOf(p.progress.Stage), Waiting: map[Reason]int{}, After: p.after, Blast: p.worst()}
	p.progress.Phase = p.phase()
	d.Progress, d.Phase = p.progress, p.progress.Phase
	d.Nodes = p.listAll()
	for _, i := range p.ordered {
		m := &p.nodes[i]
		d.Counts.tally(m)
		if m.why != nil && m.flight < 0 && (m.class == waiting || m.class == deferred || m.class == resting) {
			d.Waiting[m.why.Reason]++
		}
	}
	d.Acknowledged, _ = protocol.Acknowledged(p.snapshot.Ledger, p.policy.UID, func(uid string) (protocol.Shadow, bool) {
		i, ok := p.find(uid)
		if !ok || p.nodes[i].node.Shadow == nil {
			return protocol.Shadow{}, false
		}
		return *p.nodes[i].node.Shadow, true
	})
	d.Findings = p.findings()
	d.Reason, d.Message = p.summary(d.Counts, d.Waiting)
	d.ExpectedEnd = p.expectedEnd()
	return d
}

// phase is where the rollout stands.
func (p *plan) phase() Phase {
	switch was := p.progress.Phase; {
	case was == Paused:
		return Paused
	case was == Aborting, was == Aborted:
		if slices.ContainsFunc(p.flights, func(f flight) bool { return f.slot.State == "" && f.do != protocol.EventRelease }) {
			return Aborting
		}
		return Aborted
	case p.progress.Frozen != "":
		return Frozen
	case p.progress.Stage >= len(p.stages):
		return Completed
	case p.holdWhy != nil:
		return AtGate
	case was == Pending && (p.tooMany() != nil || p.checked() != nil):
		return Pending
	}
	return Running
}

// listAll lists the decisions: first what is to be done, in order, then the others.
func (p *plan) listAll() []Decision {
	more := 0 // slots of nodes that are not selected, or not there
	for i := range p.flights {
		if f := &p.flights[i]; f.member < 0 || p.nodes[f.member].group < 0 {
			more++
		}
	}
	return p.listWaiting(p.listActing(make([]Decision, 0, p.sizes.selected+more)))
}

// listActing adds what is to be done.
func (p *plan) listActing(all []Decision) []Decision {
	var acting []int
	for i := range p.flights {
		if p.flights[i].do != "" {
			acting = append(acting, i)
		}
	}
	slices.SortStableFunc(acting, func(a, b int) int { return rankOf(p.flights[a].do) - rankOf(p.flights[b].do) })
	for _, i := range acting {
		all = append(all, p.ofFlight(&p.flights[i]))
	}
	for _, do := range []step{stepAdmit, stepStage} {
		for _, i := range p.ordered {
			if p.nodes[i].do == do {
				all = append(all, p.ofNode(&p.nodes[i]))
			}
		}
	}
	return all
}

// listWaiting adds the others.
func (p *plan) listWaiting(all []Decision) []Decision {
	for _, i := range p.ordered {
		switch m := &p.nodes[i]; {
		case m.flight >= 0 && p.flights[m.flight].do == "":
			all = append(all, p.ofFlight(&p.flights[m.flight]))
		case m.flight < 0 && m.do == stepNone:
			all = append(all, p.ofNode(m))
		}
	}
	for i := range p.flights {
		if f := &p.flights[i]; f.do == "" && p.nodes[f.member].group < 0 {
			all = append(all, p.ofFlight(f))
		}
	}
	return all
}

// rankOf is the order of the events of slots: bad news first, then what frees and stops, then what goes on.
func rankOf(e protocol.Event) int {
	return slices.Index([]protocol.Event{
		protocol.EventGone, protocol.EventBreak, protocol.EventSuspect, protocol.EventRelease, protocol.EventRevoke, protocol.EventUndo,
		protocol.EventProceed, protocol.EventGrant, protocol.EventRetry,
	}, e)
}

func (p *plan) ofFlight(f *flight) Decision {
	d := Decision{
		Node: f.slot.Node, UID: f.slot.UID, Stage: -1, Group: -1, State: f.state, Do: f.do, Revision: f.revision, Revert: f.revert,
		Cordon: f.cordon, Uncordon: f.uncordon && !f.cordon, Force: f.force, Why: f.why,
	}
	if f.member >= 0 {
		if m := &p.nodes[f.member]; m.group >= 0 {
			d.Group, d.Stage = int32(m.group), int32(p.stageOf(m))
		}
	}
	return d
}

func (p *plan) ofNode(m *member) Decision {
	d := Decision{Node: m.node.Name, UID: m.node.UID, Stage: int32(p.stageOf(m)), Group: int32(m.group), Why: m.why}
	if m.other {
		d.State = protocol.StateOf(p.ledger.Ledger, m.shadow())
		return d
	}
	d.State = stateWithout(m)
	d.Uncordon = d.State == protocol.Resting || d.State == protocol.Staged
	switch m.do {
	case stepAdmit:
		d.Do = protocol.EventAdmit
	case stepStage:
		d.Do, d.Revision = protocol.EventStage, p.next(m)
	}
	return d
}

// summary says in one word and one sentence where the rollout stands.
func (p *plan) summary(c Counts, waiting map[Reason]int) (Reason, string) {
	reason := ReasonNone
	switch halt := p.halt(); {
	case halt != nil:
		reason = halt.Reason
	case p.holdWhy != nil:
		reason = p.holdWhy.Reason
	case p.tooMany() != nil:
		reason = ReasonBound
	case p.checked() != nil:
		reason = ReasonCheck
	case c.InFlight > 0:
		reason = ReasonInFlight
	case c.Done == c.Selected:
		reason = ReasonUpToDate
	}
	parts := []string{fmt.Sprintf("%d of %d nodes run their revision, %d in flight, %d waiting, %d deferred, %d failed, %d broken, %d lost",
		c.Done, c.Selected, c.InFlight, c.Waiting, c.Deferred, c.Failed, c.Broken, c.Lost)}
	if p.progress.Stage < len(p.stages) && len(p.policy.Stages) > 0 {
		parts = append(parts, p.stageName(p.progress.Stage))
	}
	if most := mostOf(waiting); most != "" {
		parts = append(parts, "they wait for "+most)
	}
	switch halt := p.halt(); {
	case halt != nil:
		parts = append(parts, halt.Message)
	case p.holdWhy != nil:
		parts = append(parts, p.holdWhy.Message)
	}
	for _, f := range p.findings() {
		parts = append(parts, fmt.Sprintf("check %s (%s): %s", f.Check, f.Mode, f.Message))
	}
	return reason, strings.Join(parts, "; ")
}

// mostOf names the three most frequent reasons.
func mostOf(waiting map[Reason]int) string {
	reasons := make([]Reason, 0, len(waiting))
	for r := range waiting {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b Reason) int {
		if n := waiting[b] - waiting[a]; n != 0 {
			return n
		}
		return strings.Compare(string(a), string(b))
	})
	var parts []string
	for _, r := range reasons[:min(3, len(reasons))] {
		parts = append(parts, fmt.Sprintf("%s (%d)", r, waiting[r]))
	}
	return strings.Join(parts, ", ")
}
