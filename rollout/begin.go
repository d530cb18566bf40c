// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// begin makes the progress one of this policy: of a rollout that begins, or that is superseded by another revision.
func (p *plan) begin() error {
	refs := p.refs()
	if p.progress.Targets != nil && slices.Equal(p.progress.Targets, refs) {
		p.renumber()
		p.join()
		return nil
	}
	if absent := p.absent(); p.progress.Targets == nil && len(absent) > 0 {
		return absent[0]
	}
	p.supersede()
	p.renumber()
	p.progress.Targets = refs
	p.progress.Members = p.members()
	return nil
}

// absent is what the policy names and is not there, each as a [FieldError]. A rollout does not begin without it. One that is under way or is superseded goes on, and
// says so: nodes leave meanwhile, and a revision may have cost those for which it is taken back.
func (p *plan) absent() []error {
	if p.missed == nil {
		p.missed = append([]error{}, p.findAbsent()...)
	}
	return p.missed
}

func (p *plan) findAbsent() (errs []error) {
	for i := range p.policy.Groups {
		if p.found == p.policy.listed() {
			break // thousands of them, at every pass
		}
		for j, name := range p.policy.Groups[i].Nodes {
			if _, found := p.named(name); !found {
				errs = append(errs, invalid(fmt.Sprintf("groups[%d].nodes[%d]", i, j), name, "the name of a node of the domain"))
			}
		}
	}
	for i := range p.policy.Stages {
		n := 0
		for g := range p.policy.Groups {
			if p.takes(i, g) {
				n += p.sizes.groups[g]
			}
		}
		if n == 0 {
			errs = append(errs, invalid(fmt.Sprintf("stages[%d]", i), p.policy.Stages[i].Name, "a stage whose groups have a node"))
		}
	}
	return errs
}

// listed is how many nodes the groups name.
func (policy *Policy) listed() (sum int) {
	for i := range policy.Groups {
		sum += len(policy.Groups[i].Nodes)
	}
	return sum
}

// named finds a node by name.
func (p *plan) named(name string) (int, bool) {
	return slices.BinarySearchFunc(p.nodes, name, func(m member, name string) int { return strings.Compare(m.node.Name, name) })
}

// supersede forgets what was remembered of another revision, but for what is in flight. What somebody has paused or aborted stays so; a freeze
// ends, as another revision is the way out of it.
func (p *plan) supersede() {
	old := p.progress
	next := Progress{
		Phase: old.Phase, Handled: old.Handled, Refused: old.Refused, Stopped: old.Stopped, Lifted: old.Lifted, Cycles: old.Cycles,
		Nodes: map[string]NodeProgress{},
	}
	for i := range p.ledger.Slots {
		s := &p.ledger.Slots[i]
		if s.Rollout != p.policy.UID {
			continue
		}
		if e, ok := old.Nodes[s.UID]; ok {
			next.Nodes[s.UID] = NodeProgress{
				Node: e.Node, Attempt: e.Attempt, State: e.State, Since: e.Since, Admitted: e.Admitted, Critical: e.Critical, Result: e.Result,
			}
		}
		next.Rescue = next.Rescue || isBad(s.State)
	}
	if next.Stopped == "" {
		next.Phase = Running
	}
	if old.Targets == nil && next.Stopped == "" {
		next.Phase = Pending
	}
	p.progress, p.copied = next, true
	p.lift(old.FrozenBy)
}

// members are the UIDs of the selected nodes, in order.
func (p *plan) members() []string {
	uids := make([]string, 0, p.sizes.selected)
	for i := range p.nodes {
		if p.nodes[i].group >= 0 {
			uids = append(uids, p.nodes[i].node.UID)
		}
	}
	slices.Sort(uids)
	return uids
}

// join finds the nodes that have joined since the rollout began.
func (p *plan) join() {
	if p.before != nil {
		return // nobody does in a simulation
	}
	for i := range p.nodes {
		if m := &p.nodes[i]; m.group >= 0 {
			_, member := slices.BinarySearch(p.progress.Members, m.node.UID)
			m.joined = !member
		}
	}
}

// young says why the revision is too young to be begun, or nil.
func (p *plan) young(r *Revision) *Why {
	if r.MinAge <= 0 {
		return nil
	}
	due := r.Created.Add(r.MinAge)
	if !p.now.Before(due) {
		return nil
	}
	return &Why{
		Reason: reasonMinAge, Message: fmt.Sprintf("revision %q has to be %s old, that is at %s", r.Name, r.MinAge, due.UTC().Format(time.RFC3339)),
		After: due.Sub(p.now),
	}
}

// stateWithout is the state of a node that has no slot.
func stateWithout(m *member) protocol.State {
	return protocol.StateOf(protocol.Ledger{}, m.shadow())
}
