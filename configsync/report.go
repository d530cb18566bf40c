// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Announce reports the status before the config is used, so that a config that crashes what uses it was seen. It takes
// at most Options.CallTimeout. Its error is for the log: a report that did not land is sent again by Run, and never
// stops a start.
func (s *Syncer[T]) Announce(ctx context.Context) error {
	if err := s.isMade(); err != nil {
		return err
	}
	if s.snapshot().epoch == 0 {
		return ErrNotStarted
	}
	if s.o.Reporter == nil {
		return nil
	}
	return s.report(ctx)
}

// reportHold is how long a report waits for the start that a restart is to end with, and that will be reported:
// what lies between is of interest only if it lasts.
const reportHold = 5 * time.Second

// restarts says how long a report is to wait for a restart that is under way.
func (s *Syncer[T]) restarts() time.Duration {
	asked := s.snapshot().asked.at
	if asked.IsZero() {
		return 0
	}
	return reportHold - time.Since(asked)
}

// forgetReported makes the next status news: what the server holds may have been lost or replaced there.
func (s *Syncer[T]) forgetReported() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked++
	s.reported = nil
}

// report sends the status unless the same one was sent last and the source wasn't looked at since: what is reported to
// may be another object then.
func (s *Syncer[T]) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	if err := s.reporting.acquire(ctx); err != nil {
		return err
	}
	defer s.reporting.release()
	st := s.status(ctx)
	s.mu.Lock()
	same, looked := s.reported != nil && reflect.DeepEqual(*s.reported, settled(st)), s.looked
	s.mu.Unlock()
	if same {
		return nil
	}
	err := s.o.Reporter.Report(ctx, st)
	st = settled(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = nil // a report that fails may have landed in part
	if err == nil && looked == s.looked {
		s.reported = &st
	}
	return err
}

// settled rounds down what moves with time alone to tenths of the trial, and takes the numbers out of what probes say:
// "no heartbeat for 40s" is no news after "no heartbeat for 30s". A trial is no stream of writes so.
func settled(s Status) Status {
	if s.Trial != nil {
		t := *s.Trial
		t.Healthy = t.Healthy.Truncate(max(t.Needed/10, 1))
		t.Failing = slices.Clone(t.Failing)
		for i := range t.Failing {
			t.Failing[i] = numbers.ReplaceAllString(t.Failing[i], "#")
		}
		s.Trial = &t
	}
	return s
}

// numbers are those of a text, with the letters of a duration.
var numbers = regexp.MustCompile(`[0-9]+([.:][0-9]+)*((ns|us|µs|ms|s|m|h)\b)?([0-9]+(s|m))*`)

// Status returns what the Syncer knows now. Before the first Bootstrap it is the zero Status. It may read the Store.
func (s *Syncer[T]) Status() Status {
	return s.status(context.Background()) //nolint:forbidigo // it waits for nothing that a context could end
}

func (s *Syncer[T]) status(ctx context.Context) Status {
	if s.isMade() != nil {
		return Status{}
	}
	now := s.snapshot()
	if now.epoch == 0 {
		return Status{}
	}
	st := s.tracker.State()
	next := s.next(ctx, now, now.recorded)
	v := now.view()
	v.child, v.startTime = askChild(ctx, s), max(s.o.ProbeInterval, leastStartTime)
	return describe(st, v, next)
}

// isWrong reports whether a source was found to be wrong, rather than not found.
func isWrong(k lkg.OutcomeKind) bool {
	return k == lkg.DesiredInvalid || k == lkg.DesiredMissing || k == lkg.DesiredMismatch
}

// view is what of the live state a status shows.
func (l live[T]) view() view {
	return view{verdict: l.active.Verdict, limits: l.book.limits(l.active.Ref), startedAt: l.startedAt,
		sync: l.sync, storage: errors.Join(l.storage, l.extra), run: l.run, age: time.Since(l.up),
		sick: l.sick.probe, sickFor: time.Since(l.sick.since)}
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
		out.Alarm = alarm(st, now.verdict, now.limits, now.sick, now.sickFor)
	}
	out.trouble(now)
	out.addHealth(now)
	out.Rejected = slices.Clone(st.Bad)
	slices.Reverse(out.Rejected)
	out.Trial, out.Pending = trialStatus(st, now, next), now.sync.pending
	return out
}

// trouble adds what is in the way. What is known to be bad stays so while the source is merely silent.
func (s *Status) trouble(now view) {
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
