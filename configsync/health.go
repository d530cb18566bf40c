// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belayproject/belay/lkg"
)

// streamCheck is written while the store is in trouble, to find out when it is over.
const streamCheck = "disk-check"

// recoverStorage tries a write while the store is in trouble. Once it lands, the trouble is over, and the next restart
// can be put on record, so that a config on trial that was left for its lack may be used.
func (s *Syncer[T]) recoverStorage(ctx context.Context) {
	now := s.live.snapshot()
	if now.storage == nil && now.recorded {
		return
	}
	if err := s.o.Store.Put(ctx, streamCheck, []byte(s.o.Now().UTC().Format(time.RFC3339Nano))); err != nil {
		return
	}
	s.live.updateRun(now.epoch, func(l *live[T]) { l.storage, l.recorded = nil, true })
	wake(s.notes.sync)
	wake(s.notes.report)
}

// checkHealth runs one round of probes and hands the result to the tracker, unless something was started meanwhile.
func (s *Syncer[T]) checkHealth(ctx context.Context) error {
	before := s.live.snapshot()
	h, failing := s.probes.askAll(ctx, s.tracker.State())
	ack, why, err := s.acks.awaitAck(ctx, before, s.tracker.State())
	if ctx.Err() != nil {
		return nil
	}
	s.noteStorage(err)
	if ack == ackLate {
		return s.rejectUnacknowledged(ctx, before.active.Ref)
	}
	if why != "" {
		failing = append(failing, why)
	}
	s.live.updateRun(before.epoch, func(l *live[T]) { l.run.observeProbes(h, time.Now()) })
	p, err := s.creditHealth(ctx, before.epoch, h, failing, ack == ackWaiting)
	wake(s.notes.report)
	switch p.Result {
	case lkg.ResultPromoted:
		s.notes.compareOwn()
	case lkg.ResultRejected, lkg.ResultRestart:
		return errors.Join(err, s.restarts.restartIfNeeded(ctx, true))
	}
	return err
}

// rejectUnacknowledged leaves a config that was not acknowledged in time, also where that can't be recorded.
func (s *Syncer[T]) rejectUnacknowledged(ctx context.Context, r lkg.Ref) error {
	err := s.tracker.Reject(ctx, r, "not acknowledged within "+s.o.Ack.deadline().String())
	wake(s.notes.report)
	return errors.Join(err, s.restarts.restartIfNeeded(ctx, true)) // to go back needs no record
}

// healthy reports whether no required probe fails. One that can't tell does not.
func healthy(h lkg.Health) bool {
	return !slices.ContainsFunc(h.Probes, func(p lkg.ProbeResult) bool { return p.Required && p.Err != nil && !p.Unknown })
}

// creditHealth reports h for the run that was probed; a report about a run that has ended is dropped. Health of a run
// that waits is not credited, its failures are.
func (s *Syncer[T]) creditHealth(ctx context.Context, epoch int, h lkg.Health, failing []string, waits bool) (lkg.Progress, error) {
	if err := s.live.turn.acquire(ctx); err != nil {
		return lkg.Progress{}, nil
	}
	defer s.live.turn.release()
	isPresent := s.live.updateRun(epoch, func(l *live[T]) {
		now := time.Now()
		h.Elapsed, l.run.creditedTo = now.Sub(l.run.creditedTo), now
		l.run.failing = failing
	})
	if !isPresent || waits && healthy(h) {
		return lkg.Progress{}, nil
	}
	return s.tracker.Healthy(ctx, h)
}

// noteStorage takes note of trouble with the store, and has it reported.
func (s *Syncer[T]) noteStorage(err error) {
	if err == nil {
		return
	}
	s.live.update(func(l *live[T]) { l.storage = err })
	wake(s.notes.report)
}
