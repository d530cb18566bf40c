// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// CheckOverlap is the check of a [Finding] of nodes that a rollout selects, and that belong to another one.
const CheckOverlap = "Overlap"

// An Owner is a rollout to which nodes can belong.
type Owner struct {
	Name, UID string
	Created   time.Time
}

// Compare orders the rollouts of a domain: a node belongs to the oldest that selects it, and of those of one age to the first by name.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(o.Created.Compare(other.Created), strings.Compare(o.Name, other.Name), strings.Compare(o.UID, other.UID))
}

// Owners says to which rollout of a domain nodes belong that several select. It is told of one after the other, in the order of [Owner.Compare]: a node
// stays with the first. The zero value is of none. It is not safe for concurrent use.
type Owners struct {
	all []Owner
	of  map[string]int // number in all, by UID of the node
}

// Select has the nodes that a rollout selects, by what was decided on it, belong to it.
func (o *Owners) Select(owner Owner, nodes []Decision) {
	o.add(owner)
	for i := range nodes {
		if nodes[i].Group >= 0 {
			o.take(nodes[i].UID)
		}
	}
}

// Keep has the nodes that a rollout had when it began belong to it. It is for one whose policy can't be followed, as that may be over in a moment.
func (o *Owners) Keep(owner Owner, p Progress) {
	o.add(owner)
	for _, uid := range p.Members {
		o.take(uid)
	}
}

func (o *Owners) add(owner Owner) {
	if o.of == nil {
		o.of = map[string]int{}
	}
	o.all = append(o.all, owner)
}

func (o *Owners) take(uid string) {
	if _, taken := o.of[uid]; !taken {
		o.of[uid] = len(o.all) - 1
	}
}

// ownerOf is the rollout to which a node belongs, for another one; false if the node belongs to that, to none, or if that has begun with it, by its slot in the ledger.
func (o *Owners) ownerOf(node, rollout string, l protocol.Ledger) (Owner, bool) {
	i, taken := o.of[node]
	if !taken || o.all[i].UID == rollout {
		return Owner{}, false
	}
	slot := l.Slot(node)
	return o.all[i], slot == nil || slot.Rollout != rollout
}

// Hide returns the nodes as a rollout is to see them, and the names of the owners of those that belong to others, by UID. Such a node is not to be begun, as if it
// were not well. It is not taken away: it has not left, counts for percentages, and is no newcomer when its owner goes. The nodes given are not changed.
func (o *Owners) Hide(nodes []Node, rollout string, l protocol.Ledger) (seen []Node, theirs map[string]string) {
	if len(o.of) == 0 {
		return nodes, nil
	}
	seen = nodes
	for i := range nodes {
		owner, is := o.ownerOf(nodes[i].UID, rollout, l)
		if !is {
			continue
		}
		if theirs == nil {
			seen, theirs = slices.Clone(nodes), map[string]string{}
		}
		theirs[nodes[i].UID] = owner.Name
		seen[i].Health = Verdict{Answer: Deny, Reason: string(ReasonOther), Message: fmt.Sprintf("it belongs to rollout %q", owner.Name)}
	}
	return seen, theirs
}

// Yield has decisions on nodes that [Owners.Hide] has changed say to whom those belong, in the reasons, the message and a finding.
func (d *Decisions) Yield(theirs map[string]string) {
	if len(theirs) == 0 {
		return
	}
	whys := yields{}
	selected, waits := 0, 0
	for i := range d.Nodes {
		n := &d.Nodes[i]
		owner, is := theirs[n.UID]
		if !is || n.Group < 0 {
			continue
		}
		selected++
		if why := whys.of(owner); n.Why != nil && n.Why.Reason == ReasonUnhealthy {
			n.Why = why
			waits++
		}
	}
	if selected == 0 {
		return
	}
	d.rewait(waits)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(whys)) {
		names = append(names, fmt.Sprintf("%q", name))
	}
	message := fmt.Sprintf("%d nodes are selected that belong to rollout %s", selected, strings.Join(names, ", "))
	d.Findings = append(slices.Clip(d.Findings), Finding{Check: CheckOverlap, Mode: Enforce, Message: message})
	d.Message += fmt.Sprintf("; check %s (%s): %s", CheckOverlap, Enforce, message)
}

// rewait has so many of the nodes that wait until they are well wait for another rollout.
func (d *Decisions) rewait(n int) {
	if n == 0 {
		return
	}
	d.Message = rewaited(d.Message, d.Waiting[ReasonUnhealthy], d.Waiting[ReasonOther], n)
	d.Waiting = maps.Clone(d.Waiting)
	if d.Waiting == nil {
		d.Waiting = map[Reason]int{}
	}
	if d.Waiting[ReasonUnhealthy] -= n; d.Waiting[ReasonUnhealthy] <= 0 {
		delete(d.Waiting, ReasonUnhealthy)
	}
	d.Waiting[ReasonOther] += n
}

// rewaited is a message about so many nodes that are not well and so many that others have, when n of the first belong to others, too.
func rewaited(message string, unhealthy, other, n int) string {
	old := fmt.Sprintf("%s (%d)", ReasonUnhealthy, unhealthy)
	if !strings.Contains(message, old) {
		return message // others are more frequent
	}
	var parts []string
	if left := unhealthy - n; left > 0 {
		parts = append(parts, fmt.Sprintf("%s (%d)", ReasonUnhealthy, left))
	}
	if was := fmt.Sprintf(", %s (%d)", ReasonOther, other); other > 0 { // it is the less frequent one, or the other way round
		message = strings.Replace(message, was, "", 1)
		message = strings.Replace(message, was[2:]+", ", "", 1)
	}
	parts = append(parts, fmt.Sprintf("%s (%d)", ReasonOther, other+n))
	return strings.Replace(message, old, strings.Join(parts, ", "), 1)
}

// yields are why nodes are left to others, by the name of the owner: nodes of one share it.
type yields map[string]*Why

func (y yields) of(owner string) *Why {
	if y[owner] == nil {
		y[owner] = &Why{Reason: ReasonOther, Message: fmt.Sprintf("the node belongs to rollout %q, which selects it too and comes first", owner)}
	}
	return y[owner]
}

// Yield has a simulation from a snapshot that [Owners.Hide] has changed say to whom nodes belong, as [Decisions.Yield] does.
func (s *Simulation) Yield(theirs map[string]string) {
	if len(theirs) > 0 {
		s.Expected.yield(theirs)
		s.Worst.yield(theirs)
	}
}

func (c *Course) yield(theirs map[string]string) {
	whys := yields{}
	unhealthy, other, waits := 0, 0, 0
	var others Wait // for which nodes wait that belong to others
	for i := range c.Left {
		l := &c.Left[i]
		unhealthy, other = unhealthy+is(l.Why.Reason, ReasonUnhealthy), other+is(l.Why.Reason, ReasonOther)
		owner, hidden := theirs[l.UID]
		if !hidden || l.Why.Reason != ReasonUnhealthy {
			continue
		}
		waits++
		l.Why, l.Waits = *whys.of(owner), slices.Clone(l.Waits)
		for j := range l.Waits {
			if w := &l.Waits[j]; w.Reason == ReasonUnhealthy {
				w.Reason, w.Message = ReasonOther, l.Why.Message
				others = Wait{Reason: ReasonOther, Message: l.Why.Message, For: max(others.For, w.For), Nodes: others.Nodes + 1}
			}
		}
	}
	if waits > 0 {
		c.Message = rewaited(c.Message, unhealthy, other, waits)
		c.rewait(others)
	}
}

func is(a, b Reason) int {
	if a == b {
		return 1
	}
	return 0
}

// rewait takes the nodes that wait for others out of those that wait until they are well. Who is not well stays so in a simulation: those that are left have waited for as long
// as the one of them that has waited for the longest time.
func (c *Course) rewait(others Wait) {
	rest := Wait{Reason: ReasonUnhealthy}
	add := func(waits []Wait) {
		for _, w := range waits {
			if w.Reason == ReasonUnhealthy {
				rest = Wait{Reason: w.Reason, Message: cmp.Or(rest.Message, w.Message), For: max(rest.For, w.For), Nodes: rest.Nodes + 1}
			}
		}
	}
	for _, t := range c.Turns {
		add(t.Waits)
	}
	for _, l := range c.Left {
		add(l.Waits)
	}
	c.Waits = slices.DeleteFunc(slices.Clone(c.Waits), func(w Wait) bool {
		if w.Reason == ReasonOther {
			others.For, others.Nodes = max(others.For, w.For), others.Nodes+w.Nodes
		}
		return w.Reason == ReasonUnhealthy || w.Reason == ReasonOther
	})
	for _, w := range []Wait{rest, others} {
		if w.Nodes > 0 && w.For > 0 {
			c.Waits = append(c.Waits, w)
		}
	}
	slices.SortStableFunc(c.Waits, func(a, b Wait) int { return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Reason, b.Reason)) })
}
