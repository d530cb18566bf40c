// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
)

// The types of the conditions of a Rollout. All are there from the first decision on; by phase they are
//
//	phase      Progressing  Paused  Stalled                Completed
//	Pending    False        False   True                   False
//	Running    True         False   True when it hangs     False
//	AtGate     True         False   True for an approval   False
//	Paused     False        True    True when too long     False
//	Frozen     False        False   True                   False
//	Aborting   False        True    False                  False
//	Aborted    False        True    False                  False
//	Completed  False        False   False                  True
//
// AtGate for an approval is Progressing False. A running rollout hangs when a node's drain has gone on for [StuckAfter] and something is in its way, which leaves
// Progressing True as other nodes may go on, and when somebody else has closed the ledger and no node is under way, which does not. Degraded is True as long as nodes have failed, are broken or lost, in any phase; so is Overlapping with nodes
// that are selected and belong to another rollout. Valid is False if
// nothing can be decided on the spec; then Progressing is False, and the others stay as they were, but for Paused and Stalled when somebody stops it.
const (
	// ConditionValid: the spec can be decided on.
	ConditionValid = "Valid"
	// ConditionProgressing: nodes are begun or under way, or will be by themselves.
	ConditionProgressing = "Progressing"
	// ConditionPaused: somebody has stopped the rollout.
	ConditionPaused = "Paused"
	// ConditionStalled: the rollout does not go on unless somebody does something.
	ConditionStalled = "Stalled"
	// ConditionDegraded: nodes have failed, are broken, or were given up.
	ConditionDegraded = "Degraded"
	// ConditionCompleted: all nodes had their turn.
	ConditionCompleted = "Completed"
	// ConditionOverlapping: the rollout selects nodes that belong to another one, which was made before it. It leaves them alone, and is not completed
	// as long as they run something else.
	ConditionOverlapping = "Overlapping"
)

// The reasons of conditions, besides phases and the reasons of package rollout.
const (
	// ReasonInvalid comes with Valid and Progressing, False.
	ReasonInvalid = "Invalid"
	// ReasonValid comes with Valid, True.
	ReasonValid = "Valid"
	// ReasonPausedTooLong comes with Stalled, True.
	ReasonPausedTooLong = "PausedTooLong"
	// ReasonNodesFailed comes with Degraded, True, and ReasonNoneFailed with False.
	ReasonNodesFailed = "NodesFailed"
	ReasonNoneFailed  = "NoneFailed"
	// ReasonOverlap comes with Overlapping, True, and ReasonNoOverlap with False.
	ReasonOverlap   = "Overlap"
	ReasonNoOverlap = "NoOverlap"
)

// DefaultPauseLimit is how long a rollout may be paused until it is said to be stalled, if the spec does not say.
const DefaultPauseLimit = 24 * time.Hour

// StuckAfter is how long a drain that has something in its way may have gone on until the rollout is said to be stalled. Its deadline is later, by default.
const StuckAfter = 5 * time.Minute

// A hang is what a running rollout waits for that does not come by itself, as far as that is known.
type hang struct {
	reason  rollout.Reason // empty for none
	message string
	left    time.Duration // until it is one, zero if nothing becomes one
}

// hangOf finds the broken nodes that hold up all others, the node whose drain hangs for the longest time, or who has closed the ledger.
func hangOf(d *rollout.Decisions, now time.Time) (h hang) {
	if d.Phase != rollout.Running {
		return hang{}
	}
	var longest time.Duration
	for i := range d.Nodes {
		n := &d.Nodes[i]
		since := d.Progress.Nodes[n.UID].Since
		switch age := now.Sub(since); {
		case n.Why == nil:
		case n.Why.Reason == rollout.ReasonStranded, standing(n.Why.Reason) && d.Counts.InFlight == 0 && h.reason == "":
			h.reason, h.message = n.Why.Reason, n.Why.Message
		case n.Why.Reason != rollout.ReasonBlocked || since.IsZero():
		case age < StuckAfter && (h.left == 0 || StuckAfter-age < h.left):
			h.left = StuckAfter - age
		case age >= StuckAfter && age > longest:
			longest = age
			h.reason, h.message = n.Why.Reason, fmt.Sprintf("node %q: %s", n.Node, n.Why.Message)
		}
	}
	return h
}

// setOverlap says which nodes belong to others.
func (s *RolloutStatus) setOverlap(findings []rollout.Finding, generation int64, now time.Time) {
	set := s.setter(generation, now)
	if i := slices.IndexFunc(findings, func(f rollout.Finding) bool { return f.Check == rollout.CheckOverlap }); i >= 0 {
		set(ConditionOverlapping, true, ReasonOverlap, clip(findings[i].Message, 4096))
		return
	}
	set(ConditionOverlapping, false, ReasonNoOverlap, "")
}

// standing reports whether somebody has to change something before another node is begun.
func standing(r rollout.Reason) bool {
	return r == rollout.ReasonClosed || r == rollout.ReasonCheck || r == rollout.ReasonBound
}

// setConditions makes the conditions those of the rest of the status, and says when that changes by itself; zero is never.
func (s *RolloutStatus) setConditions(spec *RolloutSpec, h hang, generation int64, now time.Time) time.Duration {
	phase := rollout.Phase(s.Phase)
	reason := s.Reason
	if reason == "" {
		reason = string(s.Phase)
	}
	set := s.setter(generation, now)
	set(ConditionValid, true, ReasonValid, "")
	approval := phase == rollout.AtGate && s.Reason == string(rollout.ReasonApproval)
	closed := standing(h.reason) || h.reason == rollout.ReasonStranded
	set(ConditionProgressing, phase == rollout.Running && !closed || phase == rollout.AtGate && !approval, reason, s.Message)
	paused := phase == rollout.Paused || phase == rollout.Aborting || phase == rollout.Aborted
	set(ConditionPaused, paused, string(s.Phase), "")
	left := time.Duration(0)
	if phase == rollout.Paused {
		left = s.pauseLeft(spec, now)
	}
	switch {
	case phase == rollout.Paused && left <= 0:
		set(ConditionStalled, true, ReasonPausedTooLong, pausedTooLong(spec))
	case phase == rollout.Pending, phase == rollout.Frozen, approval:
		set(ConditionStalled, true, reason, s.Message)
	case h.reason != "":
		set(ConditionStalled, true, string(h.reason), clip(h.message, 4096))
	default:
		set(ConditionStalled, false, string(s.Phase), "")
	}
	if c := s.Counts; s.Failed > 0 {
		set(ConditionDegraded, true, ReasonNodesFailed, fmt.Sprintf("%d failed, %d broken, %d lost", c.Failed, c.Broken, c.Lost))
	} else {
		set(ConditionDegraded, false, ReasonNoneFailed, "")
	}
	set(ConditionCompleted, phase == rollout.Completed, string(s.Phase), "")
	return max(0, left, h.left)
}

// setInvalid says that nothing can be decided.
func (s *RolloutStatus) setInvalid(generation int64, now time.Time) {
	set := s.setter(generation, now)
	set(ConditionValid, false, ReasonInvalid, s.Message)
	set(ConditionProgressing, false, ReasonInvalid, s.Message)
}

// setter sets conditions, whose times change with their status alone.
func (s *RolloutStatus) setter(generation int64, now time.Time) func(kind string, yes bool, reason, message string) {
	return func(kind string, yes bool, reason, message string) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
		}
		if yes {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

// pauseLeft is how long the pause may go on.
func (s *RolloutStatus) pauseLeft(spec *RolloutSpec, now time.Time) time.Duration {
	return meta.FindStatusCondition(s.Conditions, ConditionPaused).LastTransitionTime.Add(pauseLimit(spec)).Sub(now)
}

func pausedTooLong(spec *RolloutSpec) string {
	return fmt.Sprintf("the rollout has been paused for more than %s", pauseLimit(spec))
}

func pauseLimit(spec *RolloutSpec) time.Duration {
	if limit := duration(spec.PauseLimit); limit > 0 {
		return limit
	}
	return DefaultPauseLimit
}
