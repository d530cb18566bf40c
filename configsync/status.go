// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Status is what a Syncer knows, for reporters. Building it is pure; equal inputs give equal Statuses.
type Status struct {
	// Assigned is the config that was last recorded as current; the zero Ref is the local config.
	Assigned lkg.Ref
	// Active is the config in use; the zero Ref is the local config.
	Active lkg.Ref
	// LastKnownGood is the rollback target; the zero Ref is the local config.
	LastKnownGood lkg.Ref
	// Local says what the local config is: "init" or "default".
	Local string
	// Rejected lists the configs that this node won't use, newest first, bounded.
	Rejected []lkg.BadEntry
	// Trial is set while Active is on trial.
	Trial *TrialStatus
	// Pending is a change that was found and waits, such as an edit under [Follow]; Why says for what and until when. Nil
	// when nothing waits.
	Pending *Change
	// Error is the cause of the last trouble in finding or fetching the wanted config, or why what runs is not healthy
	// where the Condition has another cause; empty when there is none.
	Error string
	// Alarm is set when nothing is left to roll back to, or when what was rolled back to, or was promoted, is not well;
	// empty otherwise.
	Alarm string
	// Condition is the summary with the literal texts of the ConfigOK node condition.
	Condition lkg.Condition
	// ObservedGeneration is the newest generation of the source that was acted upon.
	ObservedGeneration int64
	// StartedAt is when the config in use was last started: a new value renews the condition's heartbeat.
	StartedAt time.Time
}

// TrialStatus says how far a trial has come.
type TrialStatus struct {
	// Since is when the config was assigned, by this node's wall clock, for people.
	Since time.Time
	// Needed is the healthy time that the trial asks for, Healthy what has been gathered.
	Needed, Healthy time.Duration
	// Counted are the starts that count against the config, Allowed how many may.
	Counted, Allowed int
	// Ignored says, one line each, which starts did not count and why.
	Ignored []string
	// Failing names the probes that fail now, with their errors.
	Failing []string
}

// Status returns what the Syncer knows now. Before the first Bootstrap it is the zero Status. It may read the Store.
func (s *Syncer[T]) Status() Status {
	return s.status(context.Background()) //nolint:forbidigo // it waits for nothing that a context could end
}

func (s *Syncer[T]) status(ctx context.Context) Status {
	if s.isMade() != nil {
		return Status{}
	}
	now := s.live.snapshot()
	if now.epoch == 0 {
		return Status{}
	}
	st := s.tracker.State()
	next := now.nextVerdict(ctx, st, s.o.Policy, now.recorded)
	v := now.view()
	v.child, v.startTime = s.probes.askChild(ctx), max(s.o.ProbeInterval, leastStartTime)
	return describe(st, v, next)
}

// isWrong reports whether a source was found to be wrong, rather than not found.
func isWrong(k lkg.OutcomeKind) bool {
	return k == lkg.DesiredInvalid || k == lkg.DesiredMissing || k == lkg.DesiredMismatch
}

// describe builds the status. It is pure. next is what a planned restart would use: as long as that is what runs, its
// condition is the newer knowledge. What is on record as wrong with the source is so until this process has asked it.
func describe(st lkg.State, now view, next lkg.Verdict) Status {
	out := Status{
		Assigned: st.Current.Ref, Active: now.verdict.Use, LastKnownGood: st.LastKnownGood,
		Local: string(now.verdict.Origin), Alarm: now.verdict.Alarm, StartedAt: now.startedAt,
		ObservedGeneration: now.sync.generation, Condition: now.verdict.Condition,
	}
	if next.Use.Same(now.verdict.Use) && (now.sync.found || !isWrong(st.Desired.Kind)) {
		out.Condition = next.Condition
	}
	if r := now.sync.refused; r != nil && !st.Current.Ref.Same(r.Ref) {
		out.Condition = lkg.Condition{Status: lkg.StatusFalse, Reason: r.Reason, Message: out.Condition.Message}
	}
	if bad := st.BadEntry(now.verdict.Use); bad != nil {
		out.Condition = lkg.Condition{Status: lkg.StatusFalse, Reason: bad.Reason, Message: out.Condition.Message}
	}
	if out.Alarm == "" {
		out.Alarm = findAlarm(st, now.verdict, now.limits, now.sick, now.sickFor)
	}
	out.addTrouble(now)
	out.addHealth(now)
	out.Rejected = slices.Clone(st.Bad)
	slices.Reverse(out.Rejected)
	out.Trial, out.Pending = trialStatus(st, now, next), now.sync.pending
	return out
}

// addTrouble adds what is in the way. What is known to be bad stays so while the source is merely silent.
func (s *Status) addTrouble(now view) {
	err := now.sync.err
	if err == nil {
		err = now.storage
	}
	if err == nil {
		return
	}
	s.Error = err.Error()
	if s.Condition.Status == lkg.StatusFalse && (now.sync.err == nil || now.sync.silent) {
		return
	}
	s.Condition = now.verdict.Unclear(s.Error)
}

// trialStatus is nil unless what runs is on trial.
func trialStatus(st lkg.State, now view, next lkg.Verdict) *TrialStatus {
	if !st.OnTrial() || !now.verdict.Use.Same(st.Current.Ref) {
		return nil
	}
	t := &TrialStatus{
		Since: st.Current.At, Needed: now.limits.Trial,
		Counted: next.Counted, Allowed: now.limits.CrashLoopThreshold, Failing: slices.Clone(now.run.failing),
	}
	if st.Soak.Assignment == st.Current.ID { // until the first health report the record is that of the config before
		t.Healthy = st.Soak.Accumulated
	}
	for _, i := range next.Ignored {
		t.Ignored = append(t.Ignored, string(i.Start.Cause)+": "+i.Why)
	}
	return t
}

// view is the part of the live state that a status shows.
type view struct {
	verdict   lkg.Verdict
	limits    lkg.Limits
	startedAt time.Time
	sync      syncState
	storage   error
	run       runState
	child     error         // why what is configured does not run; nil: it runs, or that is not known
	age       time.Duration // of the run
	startTime time.Duration // how long a run may take to become healthy
	sick      string        // the required probe that fails
	sickFor   time.Duration // without a break
}

// leastStartTime is how long a run may take at least to become healthy before its condition says
// that it is not.
const leastStartTime = 10 * time.Second

// endedError is an error of the Check of a Restarter that tells a child that has ended on its own
// from one that is about to be started. See [Options].Restarter.
type endedError interface{ Ended() bool }

// whyUnhealthy returns why the present run is not known to be healthy, in words that stay the same as
// long as the cause does, or the empty string. A run that nothing speaks against has time to become
// healthy. A run after a bad end has none: its condition must not change twice with each crash.
func (v view) whyUnhealthy() string {
	starting := v.run.healthy.IsZero() && v.age < v.startTime
	var ended endedError
	switch {
	case v.child != nil && (!starting || errors.As(v.child, &ended) && ended.Ended()):
		return "not healthy: " + v.child.Error()
	case isBadEnd(v.run.ended) && !v.run.isProven(v.limits):
		return "not healthy: ended: " + cmp.Or(v.run.ended.Signature, v.run.ended.Detail, "in an unknown way")
	case v.sick != "" && !starting:
		return "not healthy: required probe " + strconv.Quote(v.sick) + " fails"
	default:
		return ""
	}
}

// addHealth makes a condition that is True say why the run is not healthy. Another condition has a
// cause already.
func (s *Status) addHealth(now view) {
	why := now.whyUnhealthy()
	switch {
	case why == "":
	case s.Condition.Status == lkg.StatusTrue:
		s.Condition = lkg.Condition{Status: lkg.StatusUnknown, Reason: why, Message: s.Condition.Message}
	case s.Error == "":
		s.Error = why
	}
}

// findAlarm says what a person must look at: required probes that fail where nothing is left to fall back to, or where
// going back did not help. It is pure. sick is for how long the probe of that name fails.
func findAlarm(st lkg.State, v lkg.Verdict, l lkg.Limits, probe string, sick time.Duration) string {
	deadline := l.ProbeDeadline
	if deadline <= 0 {
		deadline = (lkg.Bounds{}).Clamp(l).ProbeDeadline // the default
	}
	switch {
	case probe == "" || sick <= deadline:
		return ""
	case v.Role != lkg.RoleCurrent:
		return fmt.Sprintf("went back to %s, and there required probe %q fails for more than %s",
			lkgName(v.Use), probe, deadline)
	case v.Use.IsLocal():
		return fmt.Sprintf("required probe %q fails for more than %s, and nothing is left to fall back to", probe, deadline)
	case st.Case != nil:
		return fmt.Sprintf("required probe %q fails for more than %s, with this config and with what is below it",
			probe, deadline)
	}
	return ""
}
