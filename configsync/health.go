// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// healthLoop probes what runs, and promotes or rejects it. It needs no server.
func (s *Syncer[T]) healthLoop(ctx context.Context) error {
	for pause(ctx, s.o.ProbeInterval, nil) {
		err := s.checkHealth(ctx)
		var ask *restartError
		if errors.As(err, &ask) {
			return ask.err
		}
		s.noteStorage(err)
	}
	return nil
}

// checkHealth runs one round of probes and hands the result to the tracker, unless something was started meanwhile.
func (s *Syncer[T]) checkHealth(ctx context.Context) error {
	before := s.snapshot()
	st := s.tracker.State()
	if !st.OnTrial() && before.active.Verdict.Role == lkg.RoleCurrent {
		return nil // what runs has proven itself; nothing hangs on a probe
	}
	h, failing := s.probe(ctx)
	if ctx.Err() != nil {
		return nil
	}
	p, err := s.creditHealth(ctx, before.epoch, h, failing)
	wake(s.wakeReport)
	switch p.Result {
	case lkg.ResultPromoted:
		wake(s.wakeSync)
	case lkg.ResultRejected:
		return errors.Join(err, s.settle(ctx, true))
	}
	return err
}

// creditHealth reports h for the run that was probed; a report about a run that has ended is dropped.
func (s *Syncer[T]) creditHealth(ctx context.Context, epoch int, h lkg.Health, failing []string) (lkg.Progress, error) {
	if err := s.turn.acquire(ctx); err != nil {
		return lkg.Progress{}, nil
	}
	defer s.turn.release()
	s.mu.Lock()
	stale := s.live.epoch != epoch
	if !stale {
		now := time.Now()
		h.Elapsed, s.live.since = now.Sub(s.live.since), now
		s.live.failing = failing
	}
	s.mu.Unlock()
	if stale {
		return lkg.Progress{}, nil
	}
	return s.tracker.Healthy(ctx, h)
}

// probe asks every probe, each with its own deadline.
func (s *Syncer[T]) probe(ctx context.Context) (lkg.Health, []string) {
	var h lkg.Health
	var failing []string
	for _, p := range s.o.Probes {
		err := s.ask(ctx, p)
		h.Probes = append(h.Probes, lkg.ProbeResult{Name: p.Name(), Required: true, Err: err})
		if err != nil {
			failing = append(failing, fmt.Sprintf("%s: %v", p.Name(), err))
		}
	}
	return h, failing
}

// ask turns a panic of a probe into its failure.
func (s *Syncer[T]) ask(ctx context.Context, p Probe) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic of type %T", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.o.ProbeTimeout)
	defer cancel()
	return p.Check(ctx)
}

func (s *Syncer[T]) noteStorage(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	s.live.storage = err
	s.mu.Unlock()
	wake(s.wakeReport)
}
