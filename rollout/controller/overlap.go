// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/rollout"
)

// ownerOf is a rollout as one to which nodes can belong.
func ownerOf(r *Rollout) rollout.Owner {
	return rollout.Owner{Name: r.Name, UID: r.Policy.UID, Created: r.Created}
}

// own has the nodes that a rollout selects belong to it, if they do to none before it. Of one whose policy can't be followed those are known that it
// had when it began; they stay its own, as it may be followed again in a moment.
func (p *pass) own(i int) {
	if i == len(p.rollouts)-1 {
		return // nobody comes after it
	}
	take := func(uid string) {
		if at, here := p.byUID[uid]; here && p.owners[at] < 0 {
			p.owners[at] = i
		}
	}
	if r := &p.rollouts[i]; p.refused[r.Policy.UID] != nil {
		for _, uid := range r.Progress.Members {
			take(uid)
		}
		return
	}
	for _, d := range p.decided[i].Nodes {
		if d.Group >= 0 {
			take(d.UID)
		}
	}
}

// disown has each node belong to nobody yet.
func (p *pass) disown() {
	p.owners, p.holders = slices.Grow(p.owners[:0], len(p.snapshot))[:len(p.snapshot)], nil
	for at := range p.owners {
		p.owners[at] = -1
	}
}

// ownerOf is the number of the other rollout that a node belongs to, if it does to one and this one has not begun with it.
func (p *pass) ownerOf(i, at int) (owner int, theirs bool) {
	if owner = p.owners[at]; owner < 0 || owner == i {
		return owner, false
	}
	if p.holders == nil { // in most passes nobody asks
		p.holders = make(map[string]string, len(p.ledger.Slots))
		for j := range p.ledger.Slots {
			p.holders[p.ledger.Slots[j].UID] = p.ledger.Slots[j].Rollout
		}
	}
	return owner, p.holders[p.snapshot[at].UID] != p.rollouts[i].Policy.UID
}

// theirs is the number of the other rollout that a node belongs to which this one selects.
func (p *pass) theirs(i int, n *rollout.Decision) (owner int, is bool) {
	if n.Group < 0 {
		return -1, false
	}
	at, here := p.byUID[n.UID]
	if !here {
		return -1, false
	}
	return p.ownerOf(i, at)
}

// planAside has Plan decide for one rollout, and leave the nodes that belong to others. Which nodes it selects is known when it was planned: one that had none of
// others the last time is planned on the nodes as they are, and once more if it has some now.
func (p *pass) planAside(i int, s rollout.Snapshot) (d rollout.Decisions, err error) {
	r := &p.rollouts[i]
	had := p.c.mind.overlaps[r.Policy.UID]
	if !had {
		if d, err = p.c.mind.planner.Plan(s, policyOf(r), p.now); err != nil || !p.overlaps(i, &d) {
			return d, err
		}
	}
	s.Nodes = p.seenBy(i)
	d, err = p.c.mind.planner.Plan(s, policyOf(r), p.now)
	clear(p.c.mind.seen) // it is to keep nothing alive
	switch {
	case err != nil:
	case p.overlap(i, &d):
		p.c.mind.overlaps[r.Policy.UID] = true
	default:
		delete(p.c.mind.overlaps, r.Policy.UID)
	}
	return d, err
}

// overlaps reports whether nodes are selected that belong to others.
func (p *pass) overlaps(i int, d *rollout.Decisions) bool {
	if len(p.rollouts) == 1 {
		return false
	}
	for j := range d.Nodes {
		if _, is := p.theirs(i, &d.Nodes[j]); is {
			return true
		}
	}
	return false
}

// seenBy are the nodes as a rollout is to see them, until the next call: such a node of others is not to be begun, as if it were not well. It is not taken away:
// it has not left, counts for percentages, and is no newcomer when its owner goes.
func (p *pass) seenBy(i int) []rollout.Node {
	nodes := append(p.c.mind.seen[:0], p.snapshot...)
	p.c.mind.seen = nodes
	verdicts := map[int]rollout.Verdict{}
	for at := range nodes {
		owner, is := p.ownerOf(i, at)
		if !is {
			continue
		}
		v, said := verdicts[owner]
		if !said {
			v = rollout.Verdict{Answer: rollout.Deny, Reason: string(rollout.ReasonOther), Message: fmt.Sprintf("it belongs to rollout %q", p.rollouts[owner].Name)}
			verdicts[owner] = v
		}
		nodes[at].Health = v
	}
	return nodes
}

// overlap has the decisions say of nodes that belong to other rollouts that they do. It reports whether any is selected.
func (p *pass) overlap(i int, d *rollout.Decisions) bool {
	theirs := map[string]string{}
	for j := range d.Nodes {
		if owner, is := p.theirs(i, &d.Nodes[j]); is {
			theirs[d.Nodes[j].UID] = p.rollouts[owner].Name
		}
	}
	d.Yield(theirs)
	return len(theirs) > 0
}
