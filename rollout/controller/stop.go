// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// ReasonStopped is the reason of a rollout whose policy can't be followed, and that somebody has paused or aborted all the same.
const ReasonStopped rollout.Reason = "Stopped"

// stop has Plan stop a rollout whose policy can't be followed, if somebody has asked for that; then it reports true. The decisions are those of a policy that
// selects no node: they close the ledger, take back what is granted and, after an abort, what is committed, and see what is further on to its end.
// What such a policy can't know stays as it was remembered.
func (p *pass) stop(i int, l protocol.Ledger, why error) bool {
	r := &p.rollouts[i]
	asked := isStop(r.Policy.Verb) && r.Policy.Verb.Request != r.Progress.Handled
	if errors.Is(why, errUnstored) || !asked && r.Progress.Stopped == "" {
		return false
	}
	s := rollout.Snapshot{Ledger: l, Nodes: p.snapshot, Progress: r.Progress}
	d, err := p.c.mind.planner.Plan(s, stopping(r), p.now)
	if err != nil {
		return false // the rollout shows what is wrong with its own policy
	}
	is := &d.Progress
	if is.Stopped == "" { // it was refused
		refused := r.Progress
		refused.Handled, refused.Refused = is.Handled, is.Refused
		d = rollout.Decisions{At: d.At, Ledger: l, Progress: refused, Phase: refused.Phase}
	} else {
		keep(&d, r.Progress)
	}
	d.Reason, d.Message = ReasonStopped, fmt.Sprintf("%v; %s", why, stopped(&d.Progress))
	p.decided[i] = d
	return true
}

// isStop reports whether a verb stops a rollout.
func isStop(v rollout.Verb) bool {
	return v.Request != "" && (v.Do == rollout.Pause || v.Do == rollout.Abort)
}

// stopping is the policy by which a rollout is stopped. It has the targets and the stages that are remembered, so that they are not superseded.
func stopping(r *Rollout) rollout.Policy {
	policy := nobodys(r.Policy.UID)
	policy.Detectors, policy.Unfollowed = []rollout.Detector{}, true
	if isStop(r.Policy.Verb) {
		policy.Verb = r.Policy.Verb
	}
	for i, t := range r.Progress.Targets {
		target := rollout.Revision{Name: t.Name, Digest: t.Digest}
		if i == 0 {
			policy.Target = target
			continue
		}
		policy.Groups = append(policy.Groups, rollout.Group{Name: fmt.Sprintf("none-%d", i), Selector: labels.Nothing(), Target: &target})
	}
	for _, name := range r.Progress.Stages {
		policy.Stages = append(policy.Stages, rollout.Stage{Name: name, Approval: true}) // it passes none
	}
	return policy
}

// keep takes of what was decided with the policy that stops a rollout what that policy knows.
func keep(d *rollout.Decisions, was rollout.Progress) {
	is := &d.Progress
	is.Targets, is.Members, is.Stages, is.Promoted = was.Targets, was.Members, was.Stages, was.Promoted
	is.SoakSince, is.Rescue = was.SoakSince, was.Rescue && is.Rescue
	if is.Stage != was.Stage { // it has passed what has no nodes
		is.Stage, is.StageFrom = was.Stage, was.StageFrom
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Do == protocol.EventUndo && d.Phase == rollout.Paused {
			n.Do, n.Cordon = "", false // it goes on when the policy can be followed, and is not emptied before: nothing could come of that
			n.Why = &rollout.Why{Reason: rollout.ReasonPaused, Message: "the rollout was paused by request " + is.Stopped}
		}
		if slot := d.Ledger.Slot(n.UID); n.Cordon && slot != nil && !slices.Contains(slot.Keys, intrusive) {
			n.Cordon, n.Uncordon = false, true
		}
	}
}

// stopped says what has come of a request to stop.
func stopped(is *rollout.Progress) string {
	if is.Stopped == "" {
		return fmt.Sprintf("request %q was refused: %s", is.Handled, is.Refused)
	}
	return fmt.Sprintf("all the same, by request %q the rollout is %s", is.Stopped, strings.ToLower(string(is.Phase)))
}

// unreadable has all rollouts say that the ledger can't be read, if that is what is wrong. Nothing is decided for any of them until somebody has mended it.
func (p *pass) unreadable(err error) error {
	if !errors.Is(err, rollout.ErrUnreadable) {
		return nil
	}
	p.refused, p.decided = map[string]error{}, make([]rollout.Decisions, len(p.rollouts))
	for i := range p.rollouts {
		r := &p.rollouts[i]
		p.refused[r.Policy.UID] = err
		p.decided[i] = rollout.Decisions{Progress: r.Progress, Phase: r.Progress.Phase, Reason: ReasonInvalid, Message: err.Error()}
		if _, err := p.store(i, false); err != nil && !errors.Is(err, errAgain) {
			return err
		}
	}
	return errors.Join(p.errs...)
}
