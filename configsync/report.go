// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"time"
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
	same, looked := r.landed != nil && reflect.DeepEqual(*r.landed, roundStatus(st)), r.looked
	r.mu.Unlock()
	if same {
		return nil
	}
	err := r.to.Report(ctx, st)
	st = roundStatus(st)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.landed = nil // a report that fails may have landed in part
	if err == nil && looked == r.looked {
		r.landed = &st
	}
	return err
}

// roundStatus rounds down what moves with time alone to tenths of the trial, and takes the numbers out of what probes
// say: "no heartbeat for 40s" is no news after "no heartbeat for 30s". A trial is no stream of writes so.
func roundStatus(s Status) Status {
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

// Joined returns a Reporter that tells all of the given ones, at the same time, so that one that hangs doesn't keep
// the others from reporting. Its Report returns when all have returned, with their errors joined in the order of the
// arguments. Nil ones are left out.
func Joined(reporters ...Reporter) Reporter {
	return joined(slices.DeleteFunc(slices.Clone(reporters), func(r Reporter) bool { return r == nil }))
}

type joined []Reporter

// Report tells every Reporter.
func (j joined) Report(ctx context.Context, s Status) error {
	errs := make([]error, len(j))
	var wg sync.WaitGroup
	for i, r := range j {
		wg.Go(func() { errs[i] = r.Report(ctx, s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// headStart is how long the others wait at the most for the one that is told first.
const headStart = time.Second

// First returns a Reporter that tells one of the given ones before the others: it is for the report that is waited
// for, so that it is not behind reports of the same news that can wait, of this node or, where many report at once,
// of others. The rest are told at the same time when it has returned, or after a second, so that one that
// hangs doesn't keep the others from reporting. Its Report returns when all have returned, with their errors joined
// in the order of the arguments. Nil ones are left out.
func First(reporter Reporter, rest ...Reporter) Reporter {
	if reporter == nil {
		return Joined(rest...)
	}
	return first{reporter, Joined(rest...)}
}

type first struct{ reporter, rest Reporter }

// Report tells every Reporter.
func (f first) Report(ctx context.Context, s Status) error {
	var errs [2]error
	told := make(chan struct{})
	go func() {
		defer close(told)
		errs[0] = f.reporter.Report(ctx, s)
	}()
	start := time.NewTimer(headStart)
	defer start.Stop()
	select {
	case <-told:
	case <-start.C:
	}
	errs[1] = f.rest.Report(ctx, s)
	<-told
	return errors.Join(errs[0], errs[1])
}
