// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/belayproject/belay/machine/provider"
)

// A fate is what becomes of a machine of an old set.
type fate int

const (
	replaced fate = iota // by one of the new set
	moved                // to the new set
	pending              // nothing is known yet
	stuck                // nothing can be done
)

// fate says it for one machine.
func (p *deploymentPass) fate(s standing) (fate, provider.Plan) {
	if p.Deployment.Spec.Strategy.Type != InPlace || s.Node == nil {
		return replaced, provider.Plan{}
	}
	plan, known := p.Plans[s.Key]
	policy := p.Deployment.Spec.Template.Spec.UpdatePolicy
	switch {
	case !known:
		return pending, plan
	case plan.Method == provider.Unsupported, plan.Method == provider.Replace && policy == InPlaceOnly:
		return stuck, plan
	case plan.Method == provider.Nothing, plan.Method == provider.InPlace && policy != ReplaceOnly:
		return moved, plan
	}
	return replaced, plan
}

// stays reports whether machines of an old set are not to be replaced: what is to be moved can't be told from the rest by the set.
func (p *deploymentPass) stays(g *group) bool {
	for _, s := range g.machines {
		if f, _ := p.fate(s); f != replaced && !s.deleting() {
			return true
		}
	}
	return false
}

// move chooses machines that change to the present set, as long as enough work.
func (p *deploymentPass) move() {
	if p.frozen || p.Skew != "" || p.Deployment.Spec.Strategy.Type != InPlace {
		return
	}
	for _, g := range p.sets {
		if g == p.current {
			continue
		}
		goes := map[Key]bool{}
		for _, s := range g.queue[:g.going] {
			goes[s.Key] = true
		}
		for _, s := range g.machines {
			if !s.deleting() && !goes[s.Key] {
				p.consider(g, s)
			}
		}
	}
}

// consider moves one machine, or says why not.
func (p *deploymentPass) consider(g *group, s standing) {
	f, plan := p.fate(s)
	switch f {
	case replaced:
		return
	case pending:
		p.movable = true
		p.d.Plan = append(p.d.Plan, s.Key)
		return
	case stuck:
		p.wait("%s stays: %s", s.Key, cmp.Or(plan.Reason, "it can be updated neither in place nor by a new instance"))
		return
	}
	p.movable = true
	if why := p.cantMove(s, plan); why != "" {
		p.wait("%s", why)
		return
	}
	p.moves = append(p.moves, Move{Machine: p.movedMachine(g, s.Machine), From: s.Owner, Reason: string(plan.Method) + ": " + plan.Reason})
}

// cantMove says why not now, or takes the machine from those that work.
func (p *deploymentPass) cantMove(s standing, plan provider.Plan) string {
	_, quarantined := s.Annotations[QuarantineAnnotation]
	switch {
	case quarantined || s.Spec.Paused:
		return s.Key.String() + " stays: it is paused or in quarantine"
	case disturbed(s.Machine):
		return s.Key.String() + " is disturbed already"
	case plan.Method == provider.Nothing || !s.loses():
		return ""
	case p.floor > 0 && p.working <= p.floor:
		return p.tooFew()
	}
	p.working--
	return ""
}

func (p *deploymentPass) tooFew() string {
	return fmt.Sprintf("%d machines work of %d, %d have to", p.working, p.aliveAfter(), p.floor)
}

// movedMachine is the machine as one of the present set. Labels and annotations of the old template go, others stay, and so does what belongs to the
// machine alone.
func (p *deploymentPass) movedMachine(from *group, m *Machine) Machine {
	to, old := p.current.was, from.was.Spec.Template
	next := *m
	next.Owner = Owner{UID: to.UID, Name: to.Name}
	next.Labels = exchange(m.Labels, old.Labels, to.Spec.Template.Labels)
	next.Annotations = exchange(m.Annotations, old.Annotations, to.Spec.Template.Annotations)
	next.Spec = to.Spec.Template.Spec.clone()
	next.Spec.ProviderID, next.Spec.Adopt = m.Spec.ProviderID, m.Spec.Adopt
	next.Spec.Decommission, next.Spec.Paused = m.Spec.Decommission, m.Spec.Paused
	return next
}

// exchange takes what was of one template out, unless somebody has changed it since, and puts what is of another in.
func exchange(have, old, next map[string]string) map[string]string {
	have = maps.Clone(have)
	maps.DeleteFunc(have, func(k, v string) bool { w, ok := old[k]; return ok && v == w })
	if have == nil && len(next) > 0 {
		have = map[string]string{}
	}
	maps.Copy(have, next)
	return have
}

// receive makes room in the present set, which makes no machines of its own meanwhile, and then moves.
func (p *deploymentPass) receive() {
	c, need := p.current, p.current.total+len(p.moves)
	if !p.marked() {
		p.wait("old sets are told to make no more machines")
		return
	}
	if c.held && c.was.Spec.Replicas >= need {
		p.d.Moves = p.moves
		return
	}
	c.change(fmt.Sprintf("%d machines are moved to it", len(p.moves)), func(s *Set) {
		s.Spec.Replicas = max(s.Spec.Replicas, need)
		s.Annotations[NoCreateAnnotation] = "receiving"
	})
}
