// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "fmt"

// bounds are how many machines there may be beyond the replicas, and how many of them may be missing.
func (s Strategy) bounds(replicas int) (surge, missing int) {
	switch {
	case s.Type == OnDelete:
		return 0, 0
	case s.MaxSurge.Value == 0 && s.MaxUnavailable.Value == 0:
		return 1, 0
	}
	surge, missing = s.MaxSurge.Up(replicas), min(s.MaxUnavailable.Down(replicas), replicas)
	if surge == 0 && missing == 0 {
		missing = 1 // or nothing could ever be done
	}
	return surge, missing
}

// budget counts what works and goes on working.
func (p *deploymentPass) budget() {
	replicas := p.Deployment.Spec.Replicas
	surge, missing := p.Deployment.Spec.Strategy.bounds(replicas)
	p.limit, p.floor = replicas+surge, max(0, replicas-missing)
	for _, g := range p.sets {
		p.working += g.working
		for _, s := range g.queue[:g.going] {
			p.working -= one(s.works())
		}
	}
}

// shrink takes machines out of sets, one at a time, as long as enough work: out of old ones because a rollout wants that, or because there are too many,
// and out of the present one because there are too many.
func (p *deploymentPass) shrink() {
	for {
		g, next := p.next()
		if g == nil {
			break
		}
		if next.loses() {
			p.working--
		}
		g.going++
	}
	for _, g := range p.sets {
		if to := g.alive - g.going; g.going > 0 && to < g.was.Spec.Replicas {
			g.change(p.shrinkWords(g), func(s *Set) { s.Spec.Replicas = to })
		}
	}
}

func (p *deploymentPass) shrinkWords(g *group) string {
	if g == p.current {
		return fmt.Sprintf("%d replicas are wanted", p.Deployment.Spec.Replicas)
	}
	return "its machines are replaced"
}

// next returns the set that is to lose a machine, and that machine: one that does not work if there is any, and of the oldest set.
func (p *deploymentPass) next() (best *group, machine standing) {
	for _, g := range p.sets {
		s, ok := p.victim(g)
		if !ok || !p.bears(g, s) {
			continue
		}
		if best == nil || machine.loses() && !s.loses() {
			best, machine = g, s
		}
	}
	return best, machine
}

// victim is the machine that the set would choose next, if one is to be taken from it.
func (p *deploymentPass) victim(g *group) (s standing, ok bool) {
	if !g.set.Deleted.IsZero() || !p.gives(g) {
		return s, false
	}
	if g.going == len(g.queue) {
		p.wait("%s", g.kept)
		return s, false
	}
	return g.queue[g.going], true
}

// gives reports whether the set has to give up a machine.
func (p *deploymentPass) gives(g *group) bool {
	left := g.alive - g.going
	switch {
	case left <= 0:
		return false
	case g == p.current:
		return p.anyOld() && !g.held && left > p.Deployment.Spec.Replicas
	case p.frozen:
		return false
	case p.aliveAfter() > p.limit:
		return true
	}
	return p.Skew == "" && p.Deployment.Spec.Strategy.Type != OnDelete && !p.stays(g)
}

// anyOld reports whether an old set has machines.
func (p *deploymentPass) anyOld() bool {
	for _, g := range p.sets {
		if g != p.current && g.alive > 0 {
			return true
		}
	}
	return false
}

func (p *deploymentPass) aliveAfter() int {
	n := 0
	for _, g := range p.sets {
		n += g.alive - g.going
	}
	return n
}

// bears reports whether enough is left without the machine: of those that work, and, as those of old sets that don't may come back, of those and
// the new ones that work.
func (p *deploymentPass) bears(g *group, s standing) bool {
	if s.loses() && p.floor > 0 && p.working <= p.floor {
		p.wait("%s", p.tooFew())
		return false
	}
	left := 0
	for _, o := range p.sets {
		if o == p.current {
			left += o.working
		} else {
			left += o.alive - o.going
		}
	}
	if g != p.current && p.floor > 0 && left <= p.floor {
		p.wait("%d machines of old sets, and new ones that work, are left, %d have to be", left, p.floor)
		return false
	}
	return true
}

// resize brings the present set to what it may have.
func (p *deploymentPass) resize() {
	c := p.current
	if c.set.Spec.Replicas < c.was.Spec.Replicas {
		return // it shrinks
	}
	if len(p.moves) > 0 {
		p.receive()
		return
	}
	replicas, has, room := p.Deployment.Spec.Replicas, c.was.Spec.Replicas, p.room()
	switch {
	case !p.anyOld() && replicas < has: // a set alone is made as small as somebody wants it
		c.change(fmt.Sprintf("%d replicas are wanted", replicas), func(s *Set) { s.Spec.Replicas = replicas })
	case c.held && p.movable && room <= c.total:
		// machines are to be moved to it when more of them work
	default:
		p.aim(has, room)
	}
}

// aim sets how many machines the present set makes. What was not reached is taken back if there is no room for it any more; no machine goes for that.
func (p *deploymentPass) aim(has, room int) {
	c, marked, to := p.current, p.marked(), min(has, max(room, p.current.total))
	if room > has && marked {
		to = room
	} else if room > has {
		p.wait("old sets are told to make no more machines")
	}
	if to == has && (!c.held || !marked) {
		return
	}
	c.change(fmt.Sprintf("%d of %d machines are to be of its template", to, p.Deployment.Spec.Replicas), func(s *Set) {
		s.Spec.Replicas = to
		if marked {
			delete(s.Annotations, NoCreateAnnotation)
		}
	})
}

// room is how many machines the present set may have beside what the others have, or come to have without us: no new ones of a template that must not
// run.
func (p *deploymentPass) room() int {
	room := p.limit
	for _, g := range p.sets {
		if g != p.current {
			room -= g.bound()
		}
	}
	room = max(0, min(p.Deployment.Spec.Replicas, room))
	if p.Skew != "" && !p.frozen {
		p.wait("%s", p.Skew)
		room = min(room, p.current.total)
	}
	return room
}
