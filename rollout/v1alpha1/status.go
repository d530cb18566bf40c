// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// Observed is what [StatusOf] makes a status of. It is no part of the API.
//
// +kubebuilder:object:generate=false
type Observed struct {
	// Policy is what was decided on, Decisions what [rollout.Plan] has decided.
	Policy    rollout.Policy
	Decisions rollout.Decisions
}

// StatusOf is the status of a Rollout after a decision. It goes on from the status that r has, the answer of [HeedRollback] included: what
// has not changed stays as it is, times of conditions and of the history among it, so that the same decisions make the same status, however
// often that was stored and read, and an idle controller has nothing to write.
//
// After is when the status changes though nothing else does: the earliest one of that of the decisions, that at which a pause becomes too long, and
// that at which a drain with something in its way has gone on for [StuckAfter]; zero means never.
func StatusOf(r *Rollout, o Observed, now time.Time) (s RolloutStatus, after time.Duration) {
	r = orEmpty(r)
	r.Status.DeepCopyInto(&s)
	d, at := &o.Decisions, metav1.NewTime(now.UTC().Truncate(time.Second))
	s.ObservedGeneration = r.Generation
	s.Phase, s.Reason, s.Message = RolloutPhase(d.Phase), string(d.Reason), clip(d.Message, 4096)
	s.Counts = countsOf(d.Counts)
	s.Done, s.Failed = fmt.Sprintf("%d/%d", d.Counts.Done, d.Counts.Selected), int64(d.Counts.Failed+d.Counts.Broken+d.Counts.Lost)
	s.Waiting = waitingFor(d.Waiting)
	if stage := stageOf(&o.Policy, &d.Progress); !equality.Semantic.DeepEqual(s.Stage, stage) {
		s.Stage = stage
	}
	s.HandledRequest, s.Refusal = d.Progress.Handled, clip(d.Progress.Refused, 4096)
	s.Acknowledged = d.Acknowledged
	s.Nodes, s.NodesOmitted = nodeReasons(d)
	s.record(r, &o, at)
	if s.Rollback != nil {
		s.Message = clip(fmt.Sprintf("%s; entry %d of the history is followed, the spec is not", d.Message, s.Rollback.Number), 4096)
	}
	s.setProgress(d.Progress)
	s.WorstCase = worstCaseOf(&d.Blast)
	s.ExpectedEnd = expect(s.ExpectedEnd, d.ExpectedEnd, now)
	after = s.setConditions(&r.Spec, hangOf(d, now), r.Generation, now)
	s.setOverlap(d.Findings, r.Generation, now)
	if after == 0 || d.After > 0 && d.After < after {
		after = d.After
	}
	return s, after
}

// InvalidStatus is the status of a Rollout on which nothing can be decided, because of an error of [PolicyOf], [ProgressOf] or [rollout.Plan].
// All that is remembered stays as it is, and so does what is said of nodes. It takes the answer of [HeedRollback] too.
func InvalidStatus(r *Rollout, err error, now time.Time) RolloutStatus {
	r = orEmpty(r)
	if err == nil {
		err = errors.New("nothing was decided")
	}
	var s RolloutStatus
	r.Status.DeepCopyInto(&s)
	s.ObservedGeneration = r.Generation
	if s.Phase == "" {
		s.Phase = RolloutPhase(rollout.Pending)
	}
	s.Reason, s.Message = ReasonInvalid, clip(InFields(r, err).Error(), 4096)
	s.ExpectedEnd = nil
	if s.Progress != nil {
		s.HandledRequest, s.Refusal = s.Progress.Handled, clip(s.Progress.Refused, 4096)
	}
	s.setInvalid(r.Generation, now)
	return s
}

// StoppedStatus is the status of a Rollout that somebody has paused or aborted though its policy can't be followed, as the message of d says: like
// [InvalidStatus], but for what that has come to and is to be remembered. After is that of [StatusOf].
func StoppedStatus(r *Rollout, d rollout.Decisions, now time.Time) (s RolloutStatus, after time.Duration) {
	r = orEmpty(r)
	s = InvalidStatus(r, errors.New(d.Message), now)
	s.setProgress(d.Progress)
	s.HandledRequest, s.Refusal = d.Progress.Handled, clip(d.Progress.Refused, 4096)
	if d.Progress.Stopped == "" {
		return s, 0 // it was refused
	}
	s.Phase, s.Acknowledged = RolloutPhase(d.Phase), d.Acknowledged
	set := s.setter(r.Generation, now)
	set(ConditionPaused, true, string(s.Phase), "")
	left := s.pauseLeft(&r.Spec, now)
	switch {
	case d.Phase != rollout.Paused:
		set(ConditionStalled, false, string(s.Phase), "")
		return s, d.After
	case left <= 0:
		set(ConditionStalled, true, ReasonPausedTooLong, pausedTooLong(&r.Spec))
		return s, d.After
	}
	if d.After > 0 {
		left = min(left, d.After)
	}
	return s, left
}

func countsOf(c rollout.Counts) *RolloutCounts {
	return &RolloutCounts{
		Selected: int64(c.Selected), Done: int64(c.Done), InFlight: int64(c.InFlight), Waiting: int64(c.Waiting), Deferred: int64(c.Deferred),
		Failed: int64(c.Failed), Broken: int64(c.Broken), Lost: int64(c.Lost),
	}
}

func waitingFor(waiting map[rollout.Reason]int) []WaitingFor {
	var all []WaitingFor
	for r, n := range waiting {
		all = append(all, WaitingFor{Reason: string(r), Count: int64(n)})
	}
	slices.SortFunc(all, func(a, b WaitingFor) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	return all[:min(len(all), MaxWaiting)]
}

// stageOf is the stage under way, or nil.
func stageOf(p *rollout.Policy, progress *rollout.Progress) *StageStatus {
	of := max(1, len(p.Stages))
	if progress.Stage >= of {
		return nil
	}
	s := &StageStatus{Number: int64(progress.Stage + 1), Of: int64(of)}
	if len(p.Stages) == 0 {
		return s
	}
	stage := &p.Stages[progress.Stage]
	s.Name = stage.Name
	if stage.Soak > 0 && !progress.SoakSince.IsZero() {
		until := metav1.NewTime(progress.SoakSince.Add(stage.Soak).UTC().Truncate(time.Second))
		s.SoaksUntil = &until
	}
	return s
}

func worstCaseOf(b *rollout.Blast) *WorstCase {
	w := &WorstCase{Nodes: int64(b.Nodes), Broken: int64(b.Broken), Message: clip(b.String(), 4096)}
	for _, s := range b.Stages {
		w.Stages = append(w.Stages, StageWorstCase{
			Stage: s.Stage, Broken: int64(s.Broken), Failures: int64(s.Failures), Detector: clip(s.Detector, 256),
		})
	}
	return w
}

// expect moves an expected end only if it has moved by a tenth of the time that is left, and by more than a minute.
func expect(before *metav1.Time, end, now time.Time) *metav1.Time {
	if end.IsZero() {
		return nil
	}
	if before != nil {
		little := max(time.Minute, before.Sub(now)/10)
		if end.Sub(before.Time).Abs() <= little {
			return before
		}
	}
	t := metav1.NewTime(end.UTC().Truncate(time.Second))
	return &t
}

// nodeReasons are the nodes of which there is most to say, and how many more there are.
func nodeReasons(d *rollout.Decisions) (reasons []NodeReason, omitted int64) {
	marked := map[string]bool{}
	for i := range d.Ledger.Slots {
		marked[d.Ledger.Slots[i].UID] = d.Ledger.Slots[i].State != ""
	}
	ranked := make([][]*rollout.Decision, ranks)
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Why == nil || n.Why.Reason == rollout.ReasonUpToDate {
			continue
		}
		rank := rankOf(n, marked)
		ranked[rank] = append(ranked[rank], n)
	}
	for _, nodes := range ranked {
		for _, n := range nodes {
			if len(reasons) == MaxNodeReasons {
				omitted++
				continue
			}
			reasons = append(reasons, NodeReason{
				Node: n.Node, State: string(n.State), Reason: string(n.Why.Reason), Message: clip(n.Why.Message, 1024),
			})
		}
	}
	return reasons, omitted
}

// ranks is how many ranks there are.
const ranks = 4

// rankOf says how important it is to speak of a node: that it is broken or stuck, is under way, waits for itself, waits for others. Within a rank
// the order is that of the decisions.
func rankOf(n *rollout.Decision, marked map[string]bool) int {
	_, slotted := marked[n.UID]
	switch n.Why.Reason {
	case rollout.ReasonBlocked, rollout.ReasonDeadline, rollout.ReasonGivenUp, rollout.ReasonLost:
		return 0
	case rollout.ReasonUnhealthy, rollout.ReasonAway, rollout.ReasonNoAgent, rollout.ReasonBackOff, rollout.ReasonLeaving, rollout.ReasonOther:
		if !slotted {
			return 2
		}
	}
	switch {
	case marked[n.UID], n.State == protocol.FailedBroken, n.State == protocol.Lost:
		return 0
	case slotted, n.Do != "":
		return 1
	}
	return ranks - 1
}
