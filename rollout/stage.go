// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"
)

// takes reports whether a stage takes a group.
func (p *plan) takes(stage, group int) bool { return p.taken[stage*len(p.targets)+group] }

// take finds out which stage takes which groups.
func (p *plan) take() {
	p.taken = make([]bool, 0, len(p.stages)*len(p.targets))
	for i := range p.stages {
		for _, g := range p.policy.Groups {
			all := len(p.stages[i].Groups) == 0
			p.taken = append(p.taken, all || slices.Contains(p.stages[i].Groups, g.Name))
		}
	}
}

// stageOf is the stage in which a node has its turn: the one under way, if it takes the node's group, or one before it took all of that; else the
// next one that does. What has joined has its turn in the last one.
func (p *plan) stageOf(m *member) int {
	last := len(p.stages) - 1
	now := min(p.progress.Stage, last)
	if m.joined {
		return last
	}
	for i := 0; i < now; i++ {
		if p.stages[i].Size == nil && p.takes(i, int(m.group)) {
			return now
		}
	}
	for i := now; i < last; i++ {
		if p.takes(i, int(m.group)) {
			return i
		}
	}
	return last
}

// A standing is how far a stage is.
type standing struct {
	// total are its nodes, without those of which somebody has accepted that they failed.
	total int
	// done run the revision, flying have a slot, pending are to be tried again, settled have failed as often as they may, eligible could go.
	done, flying, pending, settled, eligible int
	// need is how many of them are to have their turn.
	need int
	// lost are none of them: somebody has given them up.
	lost int
}

// stuck reports whether nothing is left of which a success could come without another node being begun.
func (s *standing) stuck() bool { return s.flying == 0 && s.pending == 0 && s.settled+s.lost > 0 }

// begun is how many nodes have had their turn, or have it.
func (s standing) begun() int { return s.done + s.flying + s.settled + s.pending }

// standing counts the nodes of a stage.
func (p *plan) standing(stage int) standing {
	var s standing
	for i := range p.nodes {
		m := &p.nodes[i]
		if m.group < 0 || m.joined && stage < len(p.stages)-1 || !p.takes(stage, int(m.group)) {
			continue
		}
		if m.class == lost {
			s.lost++
			continue
		}
		if (m.class == givenUp || m.class == spent) && p.progress.Nodes[m.node.UID].Accepted {
			continue
		}
		s.total++
		s.add(m)
	}
	s.need = s.total
	if size := p.stages[stage].Size; size != nil {
		s.need = min(s.total, amount(*size, s.total))
	}
	return s
}

func (s *standing) add(m *member) {
	switch m.class {
	case done:
		s.done++
	case flying:
		s.flying++
	case broken, resting:
		s.pending++
	case spent, givenUp:
		s.settled++
	case waiting:
		if m.retried {
			s.pending++
			return
		}
		if m.why == nil {
			s.eligible++
		}
	}
}

// over reports whether all of a stage's nodes have come to an end. Promoted says that those which cannot be touched are left for later.
func (s standing) over(promoted bool) bool {
	if s.flying > 0 || s.pending > 0 {
		return false
	}
	if promoted {
		return s.eligible == 0 || s.done+s.settled >= s.need
	}
	return s.done+s.settled >= s.need && (s.done > 0 || s.total == 0)
}

// advance passes the stages that are over. A stage in which all attempts are used up and none has succeeded freezes the rollout.
func (p *plan) advance() {
	for p.progress.Stage < len(p.stages) {
		i := p.progress.Stage
		s, promoted := p.standing(i), p.progress.Promoted > i
		if s.stuck() && p.failing(nil) {
			p.freezeStuck(s, i)
		}
		if p.progress.Frozen != "" || !s.over(promoted) {
			p.progress.SoakSince = time.Time{}
			return
		}
		if p.progress.SoakSince.IsZero() {
			p.progress.SoakSince = p.now
		}
		if p.holdWhy = p.hold(i); p.holdWhy != nil && !promoted {
			return
		}
		p.holdWhy = nil
		p.progress.Stage, p.progress.StageFrom, p.progress.SoakSince = i+1, len(p.progress.Outcomes), time.Time{}
	}
	if last := len(p.stages) - 1; p.failing(nil) {
		if s := p.standing(last); s.stuck() && s.eligible > 0 { // what has joined and fails keeps the next ones from being begun
			p.freezeStuck(s, last)
		}
	}
}

func (p *plan) freezeStuck(s standing, stage int) {
	p.freeze("attempts", fmt.Sprintf("%d nodes of %s have failed as often as they may or were given up, and none has succeeded", s.settled+s.lost, p.stageName(stage)))
}

// hold says what keeps a stage that is over from being passed, or nil.
func (p *plan) hold(i int) *Why {
	s := &p.stages[i]
	if g := p.gate(i); g != nil {
		if p.denied(i) && s.Soak > 0 {
			p.progress.SoakSince = time.Time{} // what goes wrong while it soaks begins it anew, when that is over
		}
		return g
	}
	if end := p.progress.SoakSince.Add(s.Soak); end.After(p.now) {
		p.again(end.Sub(p.now))
		return &Why{
			Reason: reasonSoak, Message: fmt.Sprintf("%s soaks until %s", p.stageName(i), end.UTC().Format(time.RFC3339)), After: end.Sub(p.now),
		}
	}
	if s.Approval {
		return &Why{Reason: ReasonApproval, Message: p.stageName(i) + " waits for somebody to promote it"}
	}
	return nil
}

func (p *plan) stageName(i int) string {
	if p.stages[i].Name == "" {
		return "the stage"
	}
	return fmt.Sprintf("stage %q", p.stages[i].Name)
}

// noStage asks for the gates of the whole fleet alone.
const noStage = -1

// gate says which gate does not allow to go on, or nil: of those of the whole fleet, and of a stage that is over.
func (p *plan) gate(stage int) *Why {
	for i := range p.snapshot.Gates {
		v := &p.snapshot.Gates[i]
		if v.Answer == Allow || !p.heeds(stage, v) {
			continue
		}
		p.again(v.RetryAfter)
		return &Why{Reason: reasonGate, Message: "a gate does not allow it: " + v.text(), After: v.RetryAfter}
	}
	if stage == noStage {
		return nil
	}
	for _, name := range p.stages[stage].Gates {
		if !slices.ContainsFunc(p.snapshot.Gates, func(v Verdict) bool { return v.From == name }) {
			return &Why{Reason: reasonGate, Message: fmt.Sprintf("nothing was heard of gate %q, which %s names", name, p.stageName(stage))}
		}
	}
	return nil
}

func (p *plan) denied(stage int) bool {
	return slices.ContainsFunc(p.snapshot.Gates, func(v Verdict) bool { return v.Answer == Deny && p.heeds(stage, &v) })
}

// heeds reports whether a gate has a say when a stage is over, or when nodes are begun.
func (p *plan) heeds(stage int, v *Verdict) bool {
	return !v.ForStages || stage != noStage && slices.Contains(p.stages[stage].Gates, v.From)
}

// failing reports whether a revision has failed and not succeeded since the stage began and since failures were accepted. Nil means any
// revision.
func (p *plan) failing(r *Revision) bool {
	from := max(p.progress.StageFrom, p.progress.Accepted)
	bad := false
	for i := min(from, len(p.progress.Outcomes)); i < len(p.progress.Outcomes); i++ {
		o := &p.progress.Outcomes[i]
		if r != nil && len(p.progress.Targets) > 1 && p.aimOf(o) != r {
			continue
		}
		if o.Result == Succeeded {
			return false
		}
		// A node that is gone cannot be tried again, and may have gone for other reasons; one that has fallen back has run the revision.
		bad = bad || o.Result != Lost && o.Result != FellBack
	}
	if !bad {
		return false
	}
	for _, e := range p.progress.Nodes {
		if e.Recovered && e.Stage == p.progress.Stage {
			return false
		}
	}
	return true
}

// aimOf is the target of the node of an outcome; nil if it is not there.
func (p *plan) aimOf(o *Outcome) *Revision {
	i, found := p.named(o.Node)
	if !found || p.nodes[i].group < 0 || p.nodes[i].node.UID != o.UID {
		return nil
	}
	return p.targets[p.nodes[i].group].target
}
