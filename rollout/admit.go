// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// barrier says what keeps any node from being begun, or nil.
func (p *plan) barrier() *Why {
	if why := p.halt(); why != nil {
		return why
	}
	if why := p.tooMany(); why != nil {
		return why
	}
	if why := p.checked(); why != nil {
		return why
	}
	if why := p.window(); why != nil {
		p.again(why.After)
		return why
	}
	return p.gate(noStage)
}

// retry gives broken nodes their next attempt, in their own slots.
func (p *plan) retry() {
	barrier := p.barrier()
	for i := range p.flights {
		f := &p.flights[i]
		if f.do != "" || f.member < 0 || f.slot.State == "" {
			continue
		}
		if !p.repairable(f) {
			continue
		}
		if why := p.notAgain(f, barrier); why != nil {
			f.why = why
			continue
		}
		p.tryAgain(f)
	}
}

// repairable reports whether a node that is broken, by its own word or because its work did not come back, could get another attempt.
func (p *plan) repairable(f *flight) bool {
	switch f.state {
	case protocol.FailedBroken:
		return true
	case protocol.Retrying:
		return f.sh.Orders.Revoked >= f.slot.Attempt
	case protocol.Done:
		m := &p.nodes[f.member]
		return isBad(f.slot.State) && m.group >= 0 && p.next(m).Ref() != f.brings()
	}
	return false
}

// isBad reports whether a slot is of a node that has failed; a suspect one is silent, and cannot be helped.
func isBad(s protocol.SlotState) bool {
	return s == protocol.SlotBroken || s == protocol.SlotQuarantined
}

// notAgain says why a broken node does not get its next attempt now, or nil.
func (p *plan) notAgain(f *flight, barrier *Why) *Why {
	e := p.progress.Nodes[f.slot.UID]
	revision, back := p.due(f)
	switch {
	case revision == nil:
		return &Why{Reason: ReasonGivenUp, Message: fmt.Sprintf("%d of %d attempts have failed: the node is broken, and keeps its slot", e.Attempts, p.attempts())}
	case back && e.Attempts > p.attempts():
		return &Why{Reason: ReasonGivenUp, Message: fmt.Sprintf("%d attempts have failed, and the way back to %q too: the node is broken, and keeps its slot", p.attempts(), revision.Name)}
	case e.Accepted:
		return &Why{Reason: ReasonGivenUp, Message: "the node is broken, somebody has accepted that, and it keeps its slot"}
	case barrier != nil:
		return barrier
	case e.NotBefore.After(p.now):
		p.again(e.NotBefore.Sub(p.now))
		return &Why{Reason: ReasonBackOff, Message: fmt.Sprintf("attempt %d has ended as %s", f.slot.Attempt, e.Result), After: e.NotBefore.Sub(p.now)}
	}
	return p.young(revision)
}

func (p *plan) tryAgain(f *flight) {
	next, err := p.ledger.Retry(*f.sh, p.policy.UID)
	if err != nil {
		f.why = &Why{Reason: ReasonInFlight, Message: err.Error()}
		return
	}
	p.ledger, f.do = next.Draft(), protocol.EventRetry
	f.why = &Why{Reason: reasonNextInOrder, Message: fmt.Sprintf("the broken node gets attempt %d in its place", next.Epoch)}
}

// admit gives slots to the nodes that may go, in order, as far as all caps have room. It gives every other one its reason.
func (p *plan) admit() {
	p.limit(p.capsOf(p.progress.Stage))
	a := admission{plan: p, barrier: p.barrier(), stage: min(p.progress.Stage, len(p.stages)-1)}
	a.room = p.room(a.stage)
	a.rescue, a.quorumKept = p.rescues(), p.policy.quorumMode() == Enforce
	p.ordered = p.order()
	for _, i := range p.ordered {
		m := &p.nodes[i]
		if m.class != waiting || m.why != nil {
			continue
		}
		if m.why = a.wait(m); m.why == nil {
			a.begin(m)
		}
	}
}

// An admission is one run of admit.
type admission struct {
	*plan
	barrier *Why
	stage   int
	// room is how many nodes the stage has yet to begin.
	room int
	// rescue says that broken nodes come first, or nil.
	rescue *Why
	// quorumKept: no serial node may cost the majority.
	quorumKept bool
	// asked are the answers for the revisions so far.
	asked []verdict
	later []*Why
}

// A verdict says why a revision is not tried on fresh nodes, or nil.
type verdict struct {
	revision *Revision
	fresh    *Why
	any      *Why
}

// room is how many more nodes a stage may begin.
func (p *plan) room(stage int) int {
	s := p.standing(stage)
	if p.progress.Stage >= len(p.stages) || p.stages[stage].Size == nil {
		return len(p.nodes)
	}
	return max(0, s.need-s.begun())
}

// wait says why a node that could go has to wait for others, or nil.
func (a *admission) wait(m *member) *Why {
	revision := a.next(m)
	trial := revision == a.targets[m.group].target
	if s := a.stageOf(m); trial && s > a.stage {
		return a.laterStage(s, m)
	}
	if a.barrier != nil {
		return a.barrier
	}
	v := a.verdict(revision)
	if v.any != nil {
		return v.any
	}
	if trial && !m.retried {
		if why := a.waitFresh(m, v); why != nil {
			return why
		}
	}
	if why := a.set(a.setFor(m)).full(); why != nil {
		return why
	}
	return a.quorum(m)
}

// waitFresh says why a node that has not tried the revision has to wait for those that have, or nil.
func (a *admission) waitFresh(m *member, v verdict) *Why {
	switch {
	case a.rescue != nil:
		return a.rescue
	case v.fresh != nil:
		return v.fresh
	case a.room == 0 && a.takes(a.stage, int(m.group)):
		return a.heldBy()
	}
	return nil
}

// quorum says why a serial node has to wait for the others of its kind, or nil.
func (a *admission) quorum(m *member) *Why {
	if after := a.limits.serialUp - 1; m.serial && a.quorumKept && after < a.sizes.serial/2+1 {
		return &Why{Reason: reasonQuorum, Message: fmt.Sprintf("%d of %d serial nodes would be available, a majority is %d", after, a.sizes.serial, a.sizes.serial/2+1)}
	}
	return nil
}

func (p *plan) setFor(m *member) setOf {
	return setOf{group: m.group, zone: m.zone, class: p.next(m).class(), serial: m.serial}
}

// laterStage is the reason of all nodes of a stage that has not begun. What the stage under way waits for is part of it.
func (a *admission) laterStage(s int, m *member) *Why {
	if m.joined {
		return a.limits.share(reasonJoined, "the node has joined after the rollout began: it has its turn in the last stage")
	}
	if a.later == nil {
		a.later = make([]*Why, len(a.stages))
	}
	if a.later[s] == nil {
		a.later[s] = &Why{Reason: reasonStage, Message: fmt.Sprintf("%s has to be passed first", a.stageName(a.stage))}
		if h := a.holdWhy; h != nil {
			*a.later[s] = Why{Reason: h.Reason, Message: h.Message, After: h.After}
		}
	}
	return a.later[s]
}

// heldBy is the reason of nodes for which the stage under way has no room: they have their turn in the next one.
func (a *admission) heldBy() *Why {
	if a.holdWhy != nil {
		return a.holdWhy
	}
	return a.limits.share(reasonStage, a.stageName(a.stage)+" has as many nodes as it should")
}

// verdict says what keeps a revision back.
func (a *admission) verdict(r *Revision) verdict {
	for _, v := range a.asked {
		if v.revision == r {
			return v
		}
	}
	v := verdict{revision: r, any: a.young(r)}
	if v.any != nil {
		a.again(v.any.After)
	}
	if a.failing(r) {
		v.fresh = a.stranding(fmt.Sprintf("revision %q has failed, and has not succeeded anywhere in %s", r.Name, a.stageName(a.stage)))
	}
	a.asked = append(a.asked, v)
	return v
}

// begin admits a node.
func (a *admission) begin(m *member) {
	set := a.set(a.setFor(m))
	if err := a.ledger.Admit(protocol.Admission{Shadow: m.shadow(), Rollout: a.policy.UID, Keys: set.keys}, set.caps, a.limits.absent); err != nil {
		m.why = refusal(err)
		return
	}
	k := a.ledger.Epoch
	m.do = stepAdmit
	for _, u := range set.uses {
		u.used++
		u.why = nil
	}
	if m.serial {
		a.limits.serialUp--
	}
	if a.next(m) == a.targets[m.group].target && !m.retried && a.takes(a.stage, int(m.group)) {
		a.room = max(0, a.room-1)
	}
	m.class = flying
	m.why = &Why{Reason: reasonNextInOrder, Message: fmt.Sprintf("attempt %d is to bring %q", k, a.next(m).Name)}
	e := a.progress.Nodes[m.node.UID]
	e.Node, e.Attempt, e.State, e.Since, e.Admitted = m.node.Name, k, protocol.Admitted, a.now, a.now
	e.Stage, e.Critical, e.Result = a.stage, a.isCritical(m.node), ""
	a.remember(m.node.UID, e)
}

// refusal is the reason of a node that the ledger refused.
func refusal(err error) *Why {
	why := &Why{Reason: reasonCap, Message: err.Error()}
	if e := (&protocol.Error{}); errors.As(err, &e) && e.Cap == nil {
		why.Reason = ReasonInFlight
	}
	return why
}
