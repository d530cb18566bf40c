// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// owner is a rollout as one to which nodes can belong. One that is not created yet is the youngest.
func (s *Seen) owner(r *v1alpha1.Rollout) rollout.Owner {
	o := rollout.Owner{Name: r.Name, UID: string(r.UID), Created: r.CreationTimestamp.Time}
	if o.Created.IsZero() {
		o.Created = s.Now
	}
	return o
}

// others decides on the other rollouts of the domain: their caps hold for this one too, and nodes belong to those that come before it.
func (s *Seen) others(v *Rollout) (owners rollout.Owners) {
	is := s.owner(v.Object)
	var all []*v1alpha1.Rollout
	for i := range s.Rollouts {
		if o := &s.Rollouts[i]; o.Spec.Domain == v.Object.Spec.Domain && o.UID != v.Object.UID {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Rollout) int { return s.owner(a).Compare(s.owner(b)) })
	for _, o := range all {
		other, err := s.look(o)
		if err == nil {
			other.Decisions, err = rollout.Plan(other.Snapshot, other.Policy, s.Now)
		}
		holds := func(s protocol.Slot) bool { return s.Rollout == string(o.UID) }
		switch {
		case err == nil:
			v.Snapshot.OtherCaps = append(v.Snapshot.OtherCaps, other.Decisions.Caps...)
		case o.DeletionTimestamp == nil && slices.ContainsFunc(v.Snapshot.Ledger.Slots, holds):
			v.Snapshot.OtherCaps = append(v.Snapshot.OtherCaps, protocol.Cap{Max: 1, From: fmt.Sprintf("rollout %q, whose own caps are not known", o.Name)})
		}
		owner := s.owner(o)
		switch before := owner.Compare(is) < 0; {
		case before && err == nil:
			owners.Select(owner, other.Decisions.Nodes)
		case before && o.DeletionTimestamp == nil:
			progress, _ := v1alpha1.ProgressOf(o.Status) // what of it can't be read is not known
			owners.Keep(owner, progress)
		}
	}
	return owners
}

// ending is the policy of a rollout that is being deleted: it selects no node any more.
func ending(policy rollout.Policy) rollout.Policy {
	policy.Stages, policy.Prefetch = nil, nil
	policy.Groups = slices.Clone(policy.Groups)
	for i := range policy.Groups {
		policy.Groups[i].Selector, policy.Groups[i].Nodes = labels.Nothing(), nil
	}
	return policy
}

// Simulate says how the rollout goes from now on, if all goes well. Nodes that belong to others stay theirs.
func (v *Rollout) Simulate(now time.Time, a rollout.Assumptions) (rollout.Simulation, error) {
	simulation, err := rollout.Simulate(v.Snapshot, v.Policy, now, a)
	if err != nil {
		return simulation, v1alpha1.InFields(v.Object, err)
	}
	simulation.Yield(v.Theirs)
	return simulation, nil
}
