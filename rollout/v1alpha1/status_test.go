// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// decided is a status after decisions.
func decided(t *testing.T, r *v1alpha1.Rollout, d rollout.Decisions, now time.Time) (v1alpha1.RolloutStatus, time.Duration) {
	t.Helper()
	return v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: rollout.Policy{UID: "uid-r", Target: inPolicy("v2")}, Decisions: d}, now)
}

// truths are the conditions that are true, of those that there must be.
func truths(t *testing.T, s v1alpha1.RolloutStatus) string {
	t.Helper()
	var all []string
	for _, kind := range []string{
		v1alpha1.ConditionValid, v1alpha1.ConditionProgressing, v1alpha1.ConditionPaused, v1alpha1.ConditionStalled, v1alpha1.ConditionDegraded,
		v1alpha1.ConditionCompleted,
	} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil {
			t.Fatalf("there is no condition %s in %+v", kind, s.Conditions)
		}
		if c.Reason == "" || c.ObservedGeneration != 7 {
			t.Errorf("condition %s has reason %q and generation %d, want one, and 7", kind, c.Reason, c.ObservedGeneration)
		}
		if c.Status == "True" {
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}

// Which conditions are true in which phase: the table of the documentation.
func TestConditionsByPhase(t *testing.T) {
	for _, c := range []struct {
		phase  rollout.Phase
		reason rollout.Reason
		failed int
		want   string
	}{
		{rollout.Pending, rollout.ReasonBound, 0, "Valid Stalled"},
		{rollout.Running, rollout.ReasonInFlight, 0, "Valid Progressing"},
		{rollout.Running, "", 2, "Valid Progressing Degraded"},
		{rollout.AtGate, "Soak", 0, "Valid Progressing"},
		{rollout.AtGate, "Gate", 0, "Valid Progressing"},
		{rollout.AtGate, rollout.ReasonApproval, 0, "Valid Stalled"},
		{rollout.Paused, rollout.ReasonPaused, 0, "Valid Paused"},
		{rollout.Frozen, "Frozen", 3, "Valid Stalled Degraded"},
		{rollout.Aborting, "Aborted", 0, "Valid Paused"},
		{rollout.Aborted, "Aborted", 1, "Valid Paused Degraded"},
		{rollout.Completed, rollout.ReasonUpToDate, 0, "Valid Completed"},
	} {
		d := rollout.Decisions{Phase: c.phase, Reason: c.reason, Message: "m", Counts: rollout.Counts{Failed: c.failed}}
		s, _ := decided(t, rolloutOf(t, ""), d, epoch())
		if got := truths(t, s); got != c.want {
			t.Errorf("%s by %q: got %s, want %s", c.phase, c.reason, got, c.want)
		}
	}
}

// R-RO-12: a drain that hangs shows in a condition that names the node, the pod, its budget and since when, long before its deadline; and so does
// a ledger that somebody else has closed.
func TestHangShows(t *testing.T) {
	r := rolloutOf(t, "")
	const text = `the node is being drained: pod "shop/db-0" is BudgetExhausted since 2026-03-02T12:00:00Z: 0 of 1 (budget "db")`
	blocked := rollout.Decisions{Phase: rollout.Running, Counts: rollout.Counts{InFlight: 2}, Progress: rollout.Progress{Nodes: map[string]rollout.NodeProgress{
		"a": {Since: epoch()}, "b": {Since: epoch().Add(time.Minute)},
	}}}
	for _, name := range []string{"b", "a"} {
		blocked.Nodes = append(blocked.Nodes, rollout.Decision{
			Node: "node-" + name, UID: name, State: protocol.Committed, Why: &rollout.Why{Reason: rollout.ReasonBlocked, Message: text},
		})
	}
	at := func(d rollout.Decisions, after time.Duration, want string, wantAfter time.Duration) {
		t.Helper()
		s, again := decided(t, r, d, epoch().Add(after))
		r.Status = stored(t, s)
		if got := truths(t, s); got != want || again != wantAfter {
			t.Errorf("after %s: got %s, to look again in %s; want %s, in %s", after, got, again, want, wantAfter)
		}
	}
	at(blocked, 2*time.Minute, "Valid Progressing", 3*time.Minute)
	at(blocked, v1alpha1.StuckAfter, "Valid Progressing Stalled", time.Minute)
	at(blocked, time.Hour, "Valid Progressing Stalled", 0)
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionStalled)
	if c.Reason != "DrainBlocked" || c.Message != `node "node-a": `+text {
		t.Errorf("got %s: %s, want the node that hangs for the longest time", c.Reason, c.Message)
	}
	at(rollout.Decisions{Phase: rollout.Running}, time.Hour, "Valid Progressing", 0)

	for _, reason := range []rollout.Reason{rollout.ReasonClosed, rollout.ReasonCheck, rollout.ReasonBound} {
		why := &rollout.Why{Reason: reason, Message: "somebody has to change something"}
		closed := rollout.Decisions{Phase: rollout.Running, Counts: rollout.Counts{Waiting: 1}, Nodes: []rollout.Decision{{Node: "n", UID: "n", Why: why}}}
		at(closed, time.Hour, "Valid Stalled", 0)
		closed.Counts.InFlight = 1
		at(closed, time.Hour, "Valid Progressing", 0)
	}
	why := &rollout.Why{Reason: rollout.ReasonStranded, Message: `none of the broken ones answers: "node-b"`}
	stranded := rollout.Decisions{Phase: rollout.Running, Counts: rollout.Counts{Waiting: 1, InFlight: 1}, Nodes: []rollout.Decision{{Node: "n", UID: "n", Why: why}}}
	at(stranded, time.Hour, "Valid Stalled", 0)
}

// R-RO-32: a pause that is too long shows, and it is said when to look.
func TestLongPauseShows(t *testing.T) {
	r := rolloutOf(t, "pauseLimit: 3h")
	paused := rollout.Decisions{Phase: rollout.Paused, Reason: rollout.ReasonPaused}
	at := func(h time.Duration, d rollout.Decisions, wantAfter time.Duration, want string) {
		t.Helper()
		s, after := decided(t, r, d, epoch().Add(h))
		r.Status = stored(t, s)
		if got := truths(t, s); got != want || after != wantAfter {
			t.Errorf("after %s: got %s, to look again in %s; want %s, in %s", h, got, after, want, wantAfter)
		}
	}
	at(0, paused, 3*time.Hour, "Valid Paused")
	sooner := paused
	sooner.After = time.Minute
	at(time.Hour, sooner, time.Minute, "Valid Paused")
	sooner.After = 5 * time.Hour
	at(time.Hour, sooner, 2*time.Hour, "Valid Paused")
	at(3*time.Hour, paused, 0, "Valid Paused Stalled")
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionStalled)
	if c.Reason != v1alpha1.ReasonPausedTooLong || !strings.Contains(c.Message, "3h0m0s") {
		t.Errorf("got %s: %s, want the limit named", c.Reason, c.Message)
	}
	at(4*time.Hour, rollout.Decisions{Phase: rollout.Running}, 0, "Valid Progressing")
	at(5*time.Hour, paused, 3*time.Hour, "Valid Paused")
	r = rolloutOf(t, "")
	at(0, paused, v1alpha1.DefaultPauseLimit, "Valid Paused")
}

// R-RO-01: an idle controller writes nothing: the same decisions are the same status, later and after it was stored. Times of conditions are
// those of their changes.
func TestSameDecisionsAreTheSameStatus(t *testing.T) {
	r, o := bigRollout(t, 200, 20)
	o.Policy.Stages = []rollout.Stage{{Name: "canary", Soak: time.Hour}, {Name: "all"}}
	o.Decisions.Progress.SoakSince = epoch()
	o.Decisions.Counts.Failed = 3
	o.Decisions.Blast = rollout.Blast{Nodes: 9, Broken: 4, Stages: []rollout.StageBlast{{Stage: "canary", Broken: 4}}}
	o.Decisions.ExpectedEnd = epoch().Add(10 * time.Hour)
	r.Status, _ = v1alpha1.StatusOf(r, o, epoch())
	r.Status = stored(t, r.Status)
	for i := range 5 {
		o.Decisions.ExpectedEnd = o.Decisions.ExpectedEnd.Add(time.Minute)
		if s, _ := v1alpha1.StatusOf(r, o, epoch().Add(time.Duration(i)*time.Hour)); !reflect.DeepEqual(s, r.Status) {
			t.Fatalf("after %d hours: got %+v, want %+v", i, s, r.Status)
		}
	}
	o.Decisions.Phase = rollout.Frozen
	o.Decisions.ExpectedEnd = o.Decisions.ExpectedEnd.Add(5 * time.Hour)
	later := epoch().Add(6 * time.Hour)
	s, _ := v1alpha1.StatusOf(r, o, later)
	for kind, want := range map[string]time.Time{
		v1alpha1.ConditionStalled: later, v1alpha1.ConditionDegraded: epoch(), v1alpha1.ConditionPaused: epoch(),
	} {
		if c := meta.FindStatusCondition(s.Conditions, kind); !c.LastTransitionTime.Equal(ptr(want)) {
			t.Errorf("condition %s has changed at %s, want %s", kind, c.LastTransitionTime, want)
		}
	}
	if !s.ExpectedEnd.Time.Equal(o.Decisions.ExpectedEnd) {
		t.Errorf("it is expected to end at %s, want %s", s.ExpectedEnd, o.Decisions.ExpectedEnd)
	}
}

// What people ask first stands in the status: how far, where, what waits for what, and the worst that can happen.
func TestStatusAnswers(t *testing.T) {
	o := v1alpha1.Observed{
		Policy: rollout.Policy{UID: "uid-r", Target: inPolicy("v2"), Stages: []rollout.Stage{{Name: "canary"}, {Name: "all", Soak: time.Hour}}},
		Decisions: rollout.Decisions{
			Phase: rollout.Running, Reason: rollout.ReasonInFlight, Message: "half way", Acknowledged: true,
			Counts:   rollout.Counts{Selected: 100, Done: 12, InFlight: 3, Waiting: 70, Deferred: 5, Failed: 4, Broken: 4, Lost: 2},
			Waiting:  map[rollout.Reason]int{"A": 1, "B": 2, "C": 2, "D": 50, "E": 1, "F": 1, "G": 1, "H": 1, "I": 1, "J": 1},
			Progress: rollout.Progress{Stage: 1, SoakSince: epoch(), Handled: "q", Refused: "no"},
			Blast:    rollout.Blast{Nodes: 100, Broken: 5, Stages: []rollout.StageBlast{{Stage: "canary", Broken: 5, Failures: 4, Detector: "CUSUM"}}},
		},
	}
	s, _ := v1alpha1.StatusOf(rolloutOf(t, ""), o, epoch())
	until := metav1.NewTime(epoch().Add(time.Hour))
	want := v1alpha1.RolloutStatus{
		ObservedGeneration: 7, Phase: "Running", Reason: "InFlight", Message: "half way", Revision: s.Revision, Done: "12/100", Failed: 10,
		Counts:  &v1alpha1.RolloutCounts{Selected: 100, Done: 12, InFlight: 3, Waiting: 70, Deferred: 5, Failed: 4, Broken: 4, Lost: 2},
		Waiting: s.Waiting, Stage: &v1alpha1.StageStatus{Name: "all", Number: 2, Of: 2, SoaksUntil: &until},
		HandledRequest: "q", Refusal: "no", Acknowledged: true, History: s.History, Progress: s.Progress, Conditions: s.Conditions,
		WorstCase: &v1alpha1.WorstCase{
			Nodes: 100, Broken: 5, Message: o.Decisions.Blast.String(),
			Stages: []v1alpha1.StageWorstCase{{Stage: "canary", Broken: 5, Failures: 4, Detector: "CUSUM"}},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if got := fmt.Sprint(s.Waiting); got != "[{D 50} {B 2} {C 2} {A 1} {E 1} {F 1} {G 1} {H 1}]" {
		t.Errorf("they wait for %s", got)
	}
	o.Decisions.Progress.Stage = 2
	if s, _ := v1alpha1.StatusOf(rolloutOf(t, ""), o, epoch()); s.Stage != nil {
		t.Errorf("after the last stage: got stage %+v, want none", s.Stage)
	}
}

// R-RO-09, R-RO-12: of many nodes the status speaks of those that are in trouble first, and says how many it leaves out.
func TestStatusNamesTheNodesInTrouble(t *testing.T) {
	d := rollout.Decisions{Phase: rollout.Running}
	add := func(name string, state protocol.State, reason rollout.Reason) {
		why := &rollout.Why{Reason: reason, Message: "é" + strings.Repeat("m", 2000)}
		d.Nodes = append(d.Nodes, rollout.Decision{Node: name, UID: name, State: state, Why: why})
	}
	for i := range 2 * v1alpha1.MaxNodeReasons {
		add(fmt.Sprint("waits-", i), protocol.Resting, "Cap")
		add(fmt.Sprint("done-", i), protocol.Resting, rollout.ReasonUpToDate)
	}
	add("sick", protocol.Resting, rollout.ReasonUnhealthy)
	add("flies", protocol.Granted, rollout.ReasonInFlight)
	add("broken", protocol.FailedBroken, rollout.ReasonInFlight)
	add("suspect", protocol.Applying, rollout.ReasonInFlight)
	add("stuck", protocol.Committed, rollout.ReasonBlocked)
	add("given-up", protocol.Resting, rollout.ReasonGivenUp)
	next := &rollout.Why{Reason: "NextInOrder"}
	d.Nodes = append(d.Nodes, rollout.Decision{Node: "begins", UID: "begins", Do: protocol.EventAdmit, Why: next})
	d.Ledger.Slots = []protocol.Slot{{UID: "flies"}, {UID: "broken"}, {UID: "suspect", State: protocol.SlotSuspect}, {UID: "stuck"}}
	s, _ := decided(t, rolloutOf(t, ""), d, epoch())
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Node)
	}
	if want := "broken suspect stuck given-up flies begins sick waits-0 waits-1"; !strings.HasPrefix(strings.Join(names, " "), want) {
		t.Errorf("got %v, want %s first", names[:12], want)
	}
	if len(names) != v1alpha1.MaxNodeReasons || s.NodesOmitted != v1alpha1.MaxNodeReasons+7 {
		t.Errorf("got %d nodes, and %d are left out", len(names), s.NodesOmitted)
	}
	if n := s.Nodes[2]; n.State != "Committed" || n.Reason != "DrainBlocked" || len([]rune(n.Message)) != 1024 || !strings.HasPrefix(n.Message, "ém") {
		t.Errorf("got %+v", n)
	}
}

// What cannot be decided on says so in the words of the spec, and changes nothing that is remembered.
func TestInvalidSpecShows(t *testing.T) {
	r := rolloutOf(t, "")
	r.Status, _ = decided(t, r, rollout.Decisions{Phase: rollout.Running, Progress: rollout.Progress{Stage: 1}}, epoch())
	later := epoch().Add(time.Hour)
	wrong := errors.Join(&rollout.FieldError{Field: "drainWithin", Value: -1, Want: "0 or more"}, errors.New("other"))
	s := v1alpha1.InvalidStatus(r, wrong, later)
	const message = "spec.deadlines.drain is -1, want 0 or more\nother"
	if got := truths(t, s); got != "" || s.Message != message || s.Reason != v1alpha1.ReasonInvalid || s.Phase != "Running" {
		t.Errorf("got %q true, phase %s, %s: %q", got, s.Phase, s.Reason, s.Message)
	}
	if !reflect.DeepEqual(s.Progress, r.Status.Progress) || !reflect.DeepEqual(s.History, r.Status.History) {
		t.Errorf("got %+v, want what is remembered as it was", s)
	}
	r.Status = stored(t, s)
	again := v1alpha1.InvalidStatus(r, wrong, later.Add(time.Hour))
	if !reflect.DeepEqual(again, r.Status) {
		t.Errorf("the same error once more: got %+v, want %+v", again, r.Status)
	}
	fresh := rolloutOf(t, "verb: {request: q, do: Rollback, number: 3}")
	fresh = v1alpha1.HeedRollback(fresh, shelf{}.find)
	if s := v1alpha1.InvalidStatus(fresh, errors.New("x"), later); s.Phase != "Pending" || s.HandledRequest != "q" || s.Refusal == "" {
		t.Errorf("a new rollout is %q, has handled %q and refused it with %q; want it Pending, and q refused", s.Phase, s.HandledRequest, s.Refusal)
	}
}

func ptr(t time.Time) *metav1.Time { v := metav1.NewTime(t); return &v }
