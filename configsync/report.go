// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"sync"
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
	if s.live.snapshot().epoch == 0 {
		return ErrNotStarted
	}
	if s.o.Reporter == nil {
		return nil
	}
	return s.reports.sendStatus(ctx)
}

// reportHold is how long a report waits for the start that a restart is to end with, and that will be reported:
// what lies between is of interest only if it lasts.
const reportHold = 5 * time.Second

// holdReport says how long a report is to wait for a restart that is under way.
func (a asked) holdReport() time.Duration {
	if a.at.IsZero() {
		return 0
	}
	return reportHold - time.Since(a.at)
}

// A reportSender sends each new status to the Reporter, one at a time, and remembers the last one that has landed.
type reportSender struct {
	to      Reporter
	timeout time.Duration
	status  func(context.Context) Status
	turn    semaphore // held while the Reporter is called

	mu     sync.Mutex // guards what follows; never held across I/O
	landed *Status
	looked int // counts looks at the source
}

// forgetLanded makes the next status news: what the server holds may have been lost or replaced there.
func (r *reportSender) forgetLanded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked++
	r.landed = nil
}

// sendStatus sends the status unless the same one was sent last and the source wasn't looked at since: what is reported
// to may be another object then.
func (r *reportSender) sendStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.turn.acquire(ctx); err != nil {
		return err
	}
	defer r.turn.release()
	st := r.status(ctx)
	r.mu.Lock()
	same, looked := r.landed != nil && reflect.DeepEqual(*r.landed, settled(st)), r.looked
	r.mu.Unlock()
	if same {
		return nil
	}
	err := r.to.Report(ctx, st)
	st = settled(st)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.landed = nil // a report that fails may have landed in part
	if err == nil && looked == r.looked {
		r.landed = &st
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
