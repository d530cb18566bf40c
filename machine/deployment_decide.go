// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// DecideDeployment says what a deployment needs next. It is pure. As long as one process at a time carries out what it says, there are never more
// machines than replicas and surge by its doing, deleted ones that are still there and ones that are only reserved included; and a rollout takes no
// machine away, and moves none, while fewer than replicas without MaxUnavailable would be left that work, for all that is known. A machine of which
// nothing is known doesn't count as working, and isn't taken either. Once no old set has machines, fewer replicas are obeyed whatever works.
//
// A set belongs to the present template if its own says the same, by [Template.Hash] of now: neither another number of replicas nor another version of
// this library starts a rollout. Machines of old sets are not made again, so that what a rollout takes away stays away; an old set says so by
// [NoCreateAnnotation] before the new one gets its first machine.
func DecideDeployment(v DeploymentView) DeploymentDecision {
	p := &deploymentPass{DeploymentView: v, s: v.Deployment.Status, seen: map[string]bool{}, taken: map[string]bool{}}
	p.s.Failure = nil
	p.gather()
	p.decide()
	p.report()
	d := p.d
	if !v.Live && (d.acts() || p.s.Collisions != v.Deployment.Status.Collisions) {
		p.s.Collisions = v.Deployment.Status.Collisions
		d = DeploymentDecision{NeedLive: true}
	}
	p.s.Observed = v.Deployment.Generation
	d.Status, d.Store, d.After = p.s, !p.s.equal(v.Deployment.Status), p.after
	return d
}

func (d DeploymentDecision) acts() bool {
	return d.Create != nil || len(d.Adopt)+len(d.Update)+len(d.Moves)+len(d.Delete) > 0
}

// decide takes one step after the other; each sees the effects of those before only in the next pass.
func (p *deploymentPass) decide() {
	if p.halt = p.stopped(); p.halt != "" {
		return
	}
	if p.adopt(); len(p.d.Adopt) > 0 {
		return
	}
	p.choose()
	if p.current == nil {
		p.create()
		p.mark()
		p.collect()
		return
	}
	p.mark()
	p.budget()
	p.shrink()
	p.move()
	p.resize()
	p.clean()
	p.collect()
}

// stopped says why nothing may be done.
func (p *deploymentPass) stopped() string {
	d := &p.Deployment
	switch err := d.Spec.check(); {
	case !d.Deleted.IsZero():
		return "the deployment is being deleted"
	case d.UID == "":
		return "the deployment has no UID: nothing can belong to it"
	case err != nil:
		p.fail(ReasonInvalidTemplate, err.Error())
		return err.Error()
	case d.Spec.Paused:
		return "paused by spec.paused"
	case (p.Restored || len(p.lost) > 0) && d.Annotations[adoptedAnnotation] != d.UID:
		return fmt.Sprintf("restored from a copy, with %d sets that had another deployment: nothing is changed until the annotation %s is %q",
			len(p.lost), adoptedAnnotation, d.UID)
	}
	return ""
}

// check looks for what no rollout can be done with.
func (s *DeploymentSpec) check() error {
	switch {
	case s.Replicas < 0:
		return fmt.Errorf("spec.replicas is %d: want at least 0", s.Replicas)
	case !selects(s.Selector, s.Template.Labels):
		return fmt.Errorf("the labels of the template are not those of the selector %v, or the selector is empty", s.Selector)
	case !slices.Contains([]StrategyType{"", RollingUpdate, OnDelete, InPlace}, s.Strategy.Type):
		return fmt.Errorf("spec.strategy.type is %q: want %s, %s or %s", s.Strategy.Type, RollingUpdate, OnDelete, InPlace)
	}
	if err := s.Strategy.MaxSurge.check(); err != nil {
		return fmt.Errorf("spec.strategy.maxSurge: %w", err)
	}
	if err := s.Strategy.MaxUnavailable.check(); err != nil {
		return fmt.Errorf("spec.strategy.maxUnavailable: %w", err)
	}
	return nil
}

// adopt takes over sets that have the labels and belong to nobody. Nothing else is done until that is seen.
func (p *deploymentPass) adopt() {
	for _, s := range p.free {
		p.d.Adopt = append(p.d.Adopt, Choice{s.Key, s.UID, s.Version, "selected, and without an owner"})
	}
	for _, s := range p.lost {
		p.d.Adopt = append(p.d.Adopt, Choice{s.Key, s.UID, s.Version, "restored: its deployment is known by another UID"})
	}
}

// choose finds the set of the present template: the oldest, if a mishap made several. With a template that must not run, the newest goes on.
func (p *deploymentPass) choose() {
	want := p.Deployment.Spec.Template.digest()
	for _, s := range p.sets {
		if s.set.Deleted.IsZero() && s.set.Spec.Template.digest() == want && (p.current == nil || older(s, p.current)) {
			p.current = s
		}
	}
	if p.current == nil && p.Skew != "" {
		for _, s := range p.sets {
			if s.set.Deleted.IsZero() {
				p.current, p.frozen = s, true // the last is the newest
			}
		}
	}
}

func older(a, b *group) bool {
	return cmp.Or(a.set.Created.Compare(b.set.Created), cmp.Compare(a.set.Name, b.set.Name)) < 0
}

func revisionOf(s *Set) int64 {
	n, err := strconv.ParseInt(s.Annotations[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
