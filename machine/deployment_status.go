// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// wait notes why something is not done.
func (p *deploymentPass) wait(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(p.waits, w) {
		p.waits = append(p.waits, w)
	}
}

// fail keeps the time since when the same reason holds.
func (p *deploymentPass) fail(reason, message string) {
	f := &Failure{Reason: reason, Message: message, Since: p.Now}
	if old := p.Deployment.Status.Failure; old != nil && old.Reason == reason {
		f.Since = old.Since
	}
	p.s.Failure = f
}

// report sums up.
func (p *deploymentPass) report() {
	old := p.Deployment.Status
	p.sum()
	p.s.Message = p.halt
	if p.halt == "" && len(p.waits) > 0 {
		p.s.Message = p.waits[0]
	}
	if p.halt != "" {
		return // the time while nothing may be done is not counted
	}
	if old.Progressed.IsZero() || old.Observed != p.Deployment.Generation || old.counts() != p.s.counts() {
		p.s.Progressed = p.Now
	}
	p.stalled()
}

// sum counts machines.
func (p *deploymentPass) sum() {
	p.s.Replicas, p.s.Updated, p.s.Ready, p.s.Available = 0, 0, 0, 0
	for _, g := range p.sets {
		p.s.Replicas += len(g.machines)
		if g == p.current && !p.frozen {
			p.s.Updated = len(g.machines)
		}
		for _, s := range g.machines {
			p.s.Ready += one(s.ready)
			p.s.Available += one(s.available)
			p.look(s.readyIn)
		}
	}
}

// look has the next look be no later.
func (p *deploymentPass) look(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// stalled says what keeps a rollout from coming forward.
func (p *deploymentPass) stalled() {
	if p.Skew != "" {
		p.fail(ReasonVersionSkew, p.Skew)
		return
	}
	replicas := p.Deployment.Spec.Replicas
	if p.s.Updated == replicas && p.s.Replicas == replicas && p.s.Available >= replicas {
		p.s.Message = ""
		return
	}
	if p.current != nil && p.current.was.Status.Failure != nil {
		f := *p.current.was.Status.Failure
		p.s.Failure = &f
	}
	deadline := or(p.Deployment.Spec.Deadline, defaultDeadline)
	if left := p.s.Progressed.Add(deadline).Sub(p.Now); left > 0 {
		p.look(left)
		return
	}
	if p.s.Failure == nil {
		p.fail(ReasonStalled, fmt.Sprintf("not one step since %s: %s", deadline, cmp.Or(p.s.Message, "machines are waited for")))
	}
}

func (s DeploymentStatus) counts() [5]int {
	return [5]int{s.Replicas, s.Updated, s.Ready, s.Available, int(s.Revision)}
}

func (s DeploymentStatus) equal(o DeploymentStatus) bool {
	return s.counts() == o.counts() && s.Collisions == o.Collisions && s.Progressed.Equal(o.Progressed) && s.Failure.equal(o.Failure) &&
		s.Message == o.Message && s.Observed == o.Observed
}
