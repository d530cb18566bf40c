// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/rollout"
)

// CheckOverlap is the check that finds nodes which a rollout selects, and that belong to another one.
const CheckOverlap = "Overlap"

// own has the nodes that a rollout selects belong to it, if they do to none before it. Of one whose policy can't be followed those are known that it
// had when it began; they stay its own, as it may be followed again in a moment.
func (p *pass) own(i int) {
	if i == len(p.rollouts)-1 {
		return // nobody comes after it
	}
	take := func(uid string) {
		if _, taken := p.owners[uid]; !taken {
			p.owners[uid] = i
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

// isTheirs reports whether a node belongs to another rollout, and this one has not begun with it.
func (p *pass) isTheirs(i int, uid string) bool {
	owner, taken := p.owners[uid]
	if !taken || owner == i {
		return false
	}
	slot := p.ledger.Slot(uid)
	return slot == nil || slot.Rollout != p.rollouts[i].Policy.UID
}

// seenBy are the nodes as a rollout is to see them, and the names of the owners of those that belong to others, by UID: such a node is not to be begun, as if
// it were not well. It is not taken away: it has not left, counts for percentages, and is no newcomer when its owner goes.
func (p *pass) seenBy(i int) (nodes []rollout.Node, theirs map[string]string) {
	nodes = p.snapshot
	if len(p.owners) == 0 {
		return nodes, nil
	}
	for j := range p.snapshot {
		n := &p.snapshot[j]
		if !p.isTheirs(i, n.UID) {
			continue
		}
		if theirs == nil {
			nodes, theirs = slices.Clone(p.snapshot), map[string]string{}
		}
		theirs[n.UID] = p.rollouts[p.owners[n.UID]].Name
		nodes[j].Health = rollout.Verdict{Answer: rollout.Deny, Reason: string(rollout.ReasonOther), Message: fmt.Sprintf("it belongs to rollout %q", theirs[n.UID])}
	}
	return nodes, theirs
}

// overlap has the decisions say of nodes that belong to other rollouts that they do.
func (p *pass) overlap(d *rollout.Decisions, theirs map[string]string) {
	names := map[string]bool{}
	waits, selected := 0, 0
	for i := range d.Nodes {
		n := &d.Nodes[i]
		owner, is := theirs[n.UID]
		if !is || n.Group < 0 {
			continue
		}
		selected, names[owner] = selected+1, true
		if n.Why != nil && n.Why.Reason == rollout.ReasonUnhealthy {
			n.Why = &rollout.Why{Reason: rollout.ReasonOther, Message: fmt.Sprintf("the node belongs to rollout %q, which selects it too and comes first", owner)}
			waits++
		}
	}
	if selected == 0 {
		return
	}
	rewait(d, waits)
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	message := fmt.Sprintf("%d nodes are selected that belong to rollout %s", selected, strings.Join(quoted, ", "))
	d.Findings = append(slices.Clip(d.Findings), rollout.Finding{Check: CheckOverlap, Mode: rollout.Enforce, Message: message})
	d.Message += fmt.Sprintf("; check %s (%s): %s", CheckOverlap, rollout.Enforce, message)
}

// rewait has so many of the nodes that wait until they are well wait for another rollout instead.
func rewait(d *rollout.Decisions, n int) {
	if n == 0 {
		return
	}
	was := fmt.Sprintf("%s (%d)", rollout.ReasonUnhealthy, d.Waiting[rollout.ReasonUnhealthy])
	if d.Waiting[rollout.ReasonUnhealthy] -= n; d.Waiting[rollout.ReasonUnhealthy] <= 0 {
		delete(d.Waiting, rollout.ReasonUnhealthy)
	}
	d.Waiting[rollout.ReasonOther] += n
	var parts []string
	for _, reason := range []rollout.Reason{rollout.ReasonUnhealthy, rollout.ReasonOther} {
		if left := d.Waiting[reason]; left > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", reason, left))
		}
	}
	d.Message = strings.Replace(d.Message, was, strings.Join(parts, ", "), 1)
}
