// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout"
)

// PolicyOf is the policy that a Rollout stands for, with the revisions that it names: those of its spec, or those that somebody has gone back to,
// see [HeedRollback]; and those that it was completed with last. Revisions finds a Revision by name; what it returns is not changed.
//
// A revision that is not there, has another digest, or a digest that is not that of its content is refused, and so is everything that
// [rollout.Policy.Validate] refuses: each as a [rollout.FieldError] with the name of the field in the Rollout. Of the revisions that it was completed
// with none is used that is not there any more, or has another content. With an error comes what is known all the same: the UID, and the verb, as a
// rollout can be stopped at any time.
//
// The verb Rollback is not in the policy. While an entry of the history is followed the policy has the stages and caps of spec.rollback, if there is
// one, and, where the spec names no order of nodes, [rollout.RollbackOrder]; the revisions of the entry count as completed, so that a node that joins gets
// them, and none is given back to what somebody goes back from.
func PolicyOf(r *Rollout, revisions func(name string) (*Revision, bool)) (rollout.Policy, error) {
	if err := option.CheckRequired("rollout/v1alpha1.PolicyOf", "r", r, "a Rollout"); err != nil {
		return rollout.Policy{}, err
	}
	c := &converter{r: r, revisions: revisions, rollback: r.rollback()}
	p := c.policy()
	err := errors.Join(c.errs...)
	if err == nil {
		err = InFields(r, p.Validate())
	}
	if err != nil {
		return rollout.Policy{UID: p.UID, Verb: p.Verb}, err
	}
	return p, nil
}

// A converter makes a policy of a Rollout, and collects what is wrong with that.
type converter struct {
	r         *Rollout
	revisions func(name string) (*Revision, bool)
	rollback  *RollbackStatus
	errs      []error
}

func (c *converter) refuse(field string, value any, want string) {
	c.errs = append(c.errs, &rollout.FieldError{Field: field, Value: value, Want: want})
}

func (c *converter) policy() rollout.Policy {
	s := &c.r.Spec
	p := rollout.Policy{
		UID: string(c.r.UID), Caps: capsOf(s.Caps), Cycle: duration(s.Cycle), LoseQuorum: s.LoseQuorum, Checks: checksOf(s.Checks), Attempts: int(s.Attempts),
		RetryAfter: duration(s.RetryAfter), StuckDrain: rollout.StuckDrain(s.StuckDrain), MaxBroken: s.MaxBroken, Prefetch: s.Prefetch,
		Serial: c.selector("spec.serial", s.Serial), Detectors: c.detectors(s.Detectors), Stages: stagesOf(s.Stages),
	}
	if d := s.Deadlines; d != nil {
		p.CommitWithin, p.DrainWithin, p.ApplyWithin, p.VerifyWithin = duration(d.Commit), duration(d.Drain), duration(d.Apply), duration(d.Verify)
	}
	if s.Critical != nil {
		p.Critical = c.selector("spec.critical.selector", s.Critical.Selector)
		if len(s.Critical.Nodes) > 0 {
			if p.Detectors == nil {
				p.Detectors = rollout.DefaultDetectors()
			}
			p.Detectors = append(p.Detectors, rollout.Critical{Nodes: s.Critical.Nodes})
		}
	}
	if s.Verb != nil && s.Verb.Do != DoRollback {
		p.Verb = rollout.Verb{Request: s.Verb.Request, Do: rollout.Do(s.Verb.Do), Node: s.Verb.Node}
	}
	p.Windows = c.windows(s.Windows)
	c.nodes(&p)
	if back := c.r.wayBack(); back != nil {
		p.Stages = stagesOf(back.Stages)
		if len(back.Caps) > 0 {
			p.Caps = capsOf(back.Caps)
		}
	}
	return p
}

// nodes adds the groups, and what they are brought to.
func (c *converter) nodes(p *rollout.Policy) {
	s := &c.r.Spec
	p.Order = c.order(s.Order)
	targets, field := s.targets(), "spec"
	if c.rollback != nil {
		targets, field = c.rollback.RolloutTargets, "status.rollback"
	}
	p.Target = c.revision(field+".revision", targets.Revision)
	var before RolloutTargets
	switch {
	case c.rollback != nil: // what was completed last may be what somebody goes back from
		before = targets
	case c.r.Status.Completed != nil:
		before = *c.r.Status.Completed
	}
	p.Completed = c.completed(before.Revision)
	if s.Selector != nil {
		p.Groups = append(p.Groups, rollout.Group{Name: GroupAll, Selector: c.selector("spec.selector", s.Selector)})
	}
	for i := range s.Groups {
		g, at := &s.Groups[i], fmt.Sprintf("spec.groups[%d]", i)
		group := rollout.Group{Name: g.Name, Nodes: g.Nodes, Selector: c.selector(at+".selector", g.Selector)}
		if own := targets.of(g.Name); own != nil {
			if c.rollback != nil {
				at = fmt.Sprintf("status.rollback.groups[%q]", g.Name)
			}
			target := c.revision(at+".revision", *own)
			group.Target = &target
			group.Completed = c.groupCompleted(before, g.Name)
		}
		p.Groups = append(p.Groups, group)
	}
}

// order is the one that is named; nil is the default one.
func (c *converter) order(o Order) rollout.Order {
	switch {
	case o == OrderRollback, o == "" && c.rollback != nil:
		return rollout.RollbackOrder
	case o != "" && o != OrderDefault:
		c.refuse("spec.order", string(o), fmt.Sprintf("%q or %q", OrderDefault, OrderRollback))
	}
	return nil
}

// groupCompleted is what a group was completed with last: its own revision, or that of all.
func (c *converter) groupCompleted(before RolloutTargets, group string) *rollout.Revision {
	ref := before.of(group)
	if ref == nil {
		ref = &before.Revision
	}
	if r := c.completed(*ref); r.Name != "" {
		return &r
	}
	return nil
}

// revision finds a revision, of which the name and the digest are known.
func (c *converter) revision(field string, ref PinnedRevision) rollout.Revision {
	r, err := find(ref, c.revisions)
	if err != nil {
		err.Field = field + err.Field
		c.errs = append(c.errs, err)
	}
	return r
}

// completed is a revision that is needed no more than it is there.
func (c *converter) completed(ref PinnedRevision) rollout.Revision {
	if ref.Name == "" {
		return rollout.Revision{}
	}
	r, err := find(ref, c.revisions)
	if err != nil {
		return rollout.Revision{}
	}
	return r
}

// find looks a revision up; the field of its error is that of the reference.
func find(ref PinnedRevision, revisions func(name string) (*Revision, bool)) (rollout.Revision, *rollout.FieldError) {
	var r *Revision
	found := false
	if revisions != nil {
		r, found = revisions(ref.Name)
	}
	if !found {
		return rollout.Revision{}, &rollout.FieldError{Field: ".name", Value: ref.Name, Want: "the name of a Revision that there is"}
	}
	if r.Spec.Digest != ref.Digest {
		return rollout.Revision{}, &rollout.FieldError{
			Field: ".digest", Value: ref.Digest, Want: fmt.Sprintf("%q, which Revision %q has, or another Revision", r.Spec.Digest, ref.Name),
		}
	}
	if hasContent := r.Spec.Opaque != "" || r.Spec.ConfigMapRef != nil; hasContent {
		if err := r.Spec.Check(); err != nil {
			want := fmt.Sprintf("a Revision that is what it says; in Revision %q %v", ref.Name, err)
			return rollout.Revision{}, &rollout.FieldError{Field: ".digest", Value: ref.Digest, Want: want}
		}
	}
	return rollout.Revision{
		Name: r.Name, Digest: r.Spec.Digest, Irreversible: r.Spec.Irreversible, Class: rollout.Class(r.Spec.Class),
		Created: r.CreationTimestamp.Time, MinAge: duration(r.Spec.MinAge),
	}, nil
}

// selector reads a selector; an absent one is nil.
func (c *converter) selector(field string, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		c.refuse(field, metav1.FormatLabelSelector(s), fmt.Sprintf("a label selector: %v", err))
	}
	return selector
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func checksOf(c *Checks) rollout.Checks {
	if c == nil {
		return rollout.Checks{}
	}
	return rollout.Checks{
		ControlPlane: rollout.CheckMode(c.ControlPlane), Quorum: rollout.CheckMode(c.Quorum), Data: rollout.CheckMode(c.Data),
		Caps: rollout.CheckMode(c.Caps),
	}
}

func capsOf(caps []Cap) []rollout.Cap {
	var all []rollout.Cap
	for _, c := range caps {
		all = append(all, rollout.Cap{Scope: rollout.Scope(c.Scope), Key: c.Key, Max: c.Max})
	}
	return all
}

func stagesOf(stages []Stage) []rollout.Stage {
	var all []rollout.Stage
	for _, s := range stages {
		all = append(all, rollout.Stage{
			Name: s.Name, Groups: s.Groups, Size: s.Size, Caps: capsOf(s.Caps), Soak: duration(s.Soak), Gates: s.Gates, Approval: s.Approval,
		})
	}
	return all
}
