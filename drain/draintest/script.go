// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// A Script is what happens to the requests of a client: faults that are planned, and a log. A [Cluster] has one, and a [Proxy].
type Script struct {
	now     func() time.Time
	latency time.Duration
	drop    func() // freezes the cache; nil where there is none to freeze

	mu      sync.Mutex
	faults  []*plannedFault
	calls   []Call
	crashed bool
}

// A plannedFault counts the requests that it has met.
type plannedFault struct {
	Fault
	met int
}

// Faults plans faults, in addition to those that are planned. A request that meets several has the first.
func (s *Script) Faults(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Nth, f.Times = max(f.Nth, 1), max(f.Times, -1)
		if f.Times == 0 {
			f.Times = 1
		}
		s.faults = append(s.faults, &plannedFault{Fault: f})
	}
}

// ClearFaults takes all faults back. A process that has crashed stays dead.
func (s *Script) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Revive lets a process that has crashed make requests again: call it where the test starts the next one.
func (s *Script) Revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashed = false
}

// Crashed reports whether a crash has happened since [Script.Revive].
func (s *Script) Crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// arrive counts a request and returns the fault that it meets; the zero one is none.
func (s *Script) arrive(call Call) (*Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return nil, ErrCrash
	}
	write := call.Verb == Evict || call.Verb == Delete || call.Verb == PatchNode
	hit := &Fault{}
	for _, f := range s.faults {
		if f.Verb != call.Verb && (f.Verb != AnyWrite || !write) || f.Object != "" && f.Object != call.Object {
			continue
		}
		f.met++
		if hit.Nth == 0 && f.met >= f.Nth && (f.Times < 0 || f.met < f.Nth+f.Times) {
			hit = &f.Fault
		}
	}
	return hit, nil
}

// strike does what a fault does besides the answer.
func (s *Script) strike(f *Fault) {
	if f.dropWatch && s.drop != nil {
		s.drop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashed = s.crashed || f.crash
}

// Log returns the requests so far, in the order of their answers. Where verbs are given, only those.
func (s *Script) Log(verbs ...Verb) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, call := range s.calls {
		if len(verbs) == 0 || slices.Contains(verbs, call.Verb) {
			out = append(out, call)
		}
	}
	return out
}

// ClearLog empties the log.
func (s *Script) ClearLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// call carries out a request: the wait, the fault that is planned for it, the commit, the log.
func (s *Script) call(ctx context.Context, call Call, commit func() (wrote bool, err error)) error {
	call.Started = s.now()
	f, err := s.arrive(call)
	if err != nil {
		return err
	}
	if !backoff.Sleep(ctx, s.latency+f.Delay) {
		return s.answer(call, ctx.Err(), false)
	}
	if f.before != nil {
		s.strike(f)
		return s.answer(call, f.before(call), false)
	}
	wrote, err := commit()
	s.strike(f)
	if f.after != nil {
		backoff.Sleep(ctx, f.silence)
		err = cmp.Or(ctx.Err(), f.after)
	}
	return s.answer(call, err, wrote)
}

// answer logs a request and returns what the caller is told. A process that has died meanwhile hears nothing.
func (s *Script) answer(call Call, err error, wrote bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		err = ErrCrash
	}
	call.Answered, call.Err, call.Wrote = s.now(), err, wrote
	s.calls = append(s.calls, call)
	return err
}
