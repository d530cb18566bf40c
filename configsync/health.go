// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/configsync/internal/baseline"
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
	r := s.probes.askAll(ctx, s.tracker.State())
	ack, why, err := s.acks.awaitAck(ctx, before, s.tracker.State())
	if ctx.Err() != nil {
		return nil
	}
	s.noteStorage(err)
	if ack == ackLate {
		return s.rejectUnacknowledged(ctx, before.active.Ref)
	}
	if why != "" {
		r.failing = append(r.failing, why)
	}
	s.live.updateRun(before.epoch, func(l *live[T]) { l.run.observeProbes(r.health, time.Now()) })
	p, err := s.creditHealth(ctx, before.epoch, r, ack == ackWaiting)
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

// isHealthy reports whether no required probe fails. One that can't tell does not.
func isHealthy(h lkg.Health) bool {
	return !slices.ContainsFunc(h.Probes, func(p lkg.ProbeResult) bool { return p.Required && p.Err != nil && !p.Unknown })
}

// creditHealth reports r for the run that was probed; a report about a run that has ended is dropped. Health of a run
// that waits is not credited, its failures are.
func (s *Syncer[T]) creditHealth(
	ctx context.Context, epoch int, r probeRound, waits bool,
) (lkg.Progress, error) {
	if err := s.live.turn.acquire(ctx); err != nil {
		return lkg.Progress{}, nil
	}
	defer s.live.turn.release()
	isPresent := s.live.updateRun(epoch, func(l *live[T]) {
		now := time.Now()
		r.health.Elapsed, l.run.creditedTo = now.Sub(l.run.creditedTo), now
		l.run.failing = r.failing
	})
	if !isPresent || waits && isHealthy(r.health) {
		return lkg.Progress{}, nil
	}
	return s.tracker.Healthy(ctx, r.health)
}

// noteStorage takes note of trouble with the store, and has it reported.
func (s *Syncer[T]) noteStorage(err error) {
	if err == nil {
		return
	}
	s.live.update(func(l *live[T]) { l.storage = err })
	wake(s.notes.report)
}

// Wanted makes a probe that is shown in the status and decides nothing: all the others of Options.Probes are required.
// That of nil is nil, which is no probe.
func Wanted(p Probe) Probe {
	if p == nil {
		return nil
	}
	return optional{p}
}

// optional is a probe that is not required.
type optional struct{ Probe }

// A probeRound is what the probes say in one round.
type probeRound struct {
	health  lkg.Health
	failing []string // the probes that fail, with their errors, for people
}

// A prober asks the probes. It bounds each call and takes a panic for a failure.
type prober struct {
	probes  []Probe
	child   Probe // the Restarter, if it knows whether what it restarts is alive; else nil
	timeout time.Duration
}

func newProber(probes []Probe, r Restarter, timeout time.Duration) prober {
	child, _ := r.(Probe)
	return prober{probes: probes, child: child, timeout: timeout}
}

// askAll asks every probe, each with its own deadline; those that call a server only while something hangs on them.
func (a prober) askAll(ctx context.Context, st lkg.State) (round probeRound) {
	for _, p := range a.probes {
		if needsServer(p) && !isUnsettled(&st) {
			continue
		}
		err := a.askProbe(ctx, p)
		_, wanted := p.(optional)
		r := lkg.ProbeResult{
			Name: p.Name(), Required: !wanted, Err: err, Below: errors.Is(err, ErrBelow), Unknown: errors.Is(err, ErrUndecided),
		}
		round.health.Probes = append(round.health.Probes, r)
		switch {
		case r.Unknown && !wanted:
			round.failing = append(round.failing, fmt.Sprintf("%s (not known): %v", p.Name(), err))
		case err != nil && wanted:
			round.failing = append(round.failing, fmt.Sprintf("%s (not required): %v", p.Name(), err))
		case err != nil:
			round.failing = append(round.failing, fmt.Sprintf("%s: %v", p.Name(), err))
		}
	}
	return round
}

// askProbe turns a panic of a probe into its failure.
func (a prober) askProbe(ctx context.Context, p Probe) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic of type %T", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return p.Check(ctx)
}

// askChild returns why what is configured does not run, if the Restarter knows.
func (a prober) askChild(ctx context.Context) error {
	if a.child == nil {
		return nil
	}
	return a.askProbe(ctx, a.child)
}

// withChild adds a Restarter that knows whether what it restarts is alive to the probes, so that no time is credited to
// what is dead.
func withChild(probes []Probe, r Restarter) []Probe {
	p, ok := r.(Probe)
	if !ok {
		return probes
	}
	for _, other := range probes {
		if other.Name() == p.Name() {
			return probes
		}
	}
	return append([]Probe{p}, probes...)
}

// withBaselines wraps each probe that compares, so that its Check does where there is a baseline.
func withBaselines(probes []Probe, store Store, t *lkg.Tracker) []Probe {
	keeper := baseline.NewKeeper(store, func() baseline.Use {
		st := t.State()
		return baseline.Use{Trial: trialOf(&st), Fallback: !usesCurrent(&st)}
	})
	out := make([]Probe, 0, len(probes))
	for _, p := range probes {
		inner, wanted := unwrapWanted(p)
		if c, ok := inner.(baseline.Comparer); ok {
			p = baseline.Compared{Comparer: c, Keeper: keeper}
			if wanted {
				p = optional{p}
			}
		}
		out = append(out, p)
	}
	return out
}

// trialOf identifies the assigned config, its assignment, and the last promotion; empty if nothing is assigned.
func trialOf(st *lkg.State) string {
	if st.Current.ID == "" {
		return ""
	}
	return st.Current.ID + "@" + st.PromotedAt.UTC().Format(time.RFC3339Nano)
}

// takeBaselines has each probe that compares say what it sees, before a restart that puts the assigned config in the
// place of another one. run is the number of the run that ends. Where that fails there is no baseline.
func takeBaselines(ctx context.Context, v lkg.Verdict, run int, probes []Probe, t *lkg.Tracker) {
	if v.Role != lkg.RoleCurrent || v.Use.IsLocal() {
		return
	}
	var keeper *baseline.Keeper
	var all []baseline.Comparer
	for _, p := range probes {
		inner, _ := unwrapWanted(p)
		if c, ok := inner.(baseline.Compared); ok {
			keeper, all = c.Keeper, append(all, c.Comparer)
		}
	}
	if keeper != nil {
		st := t.State()
		_ = keeper.TakeAll(ctx, trialOf(&st), run, all) // a restart does not hang on it
	}
}

// unwrapWanted returns what [Wanted] was given, and whether it was.
func unwrapWanted(p Probe) (inner Probe, wanted bool) {
	o, ok := p.(optional)
	if ok {
		return o.Probe, true
	}
	return p, false
}

// needsServer reports whether a probe calls a server.
func needsServer(p Probe) bool {
	p, _ = unwrapWanted(p)
	if c, ok := p.(baseline.Compared); ok {
		p = c.Comparer
	}
	s, ok := p.(interface{ NeedsServer() bool })
	return ok && s.NeedsServer()
}

// usesCurrent reports whether the last start uses the assigned config.
func usesCurrent(st *lkg.State) bool {
	return len(st.Starts) > 0 && st.Starts[len(st.Starts)-1].Used.Role == lkg.RoleCurrent
}

// isUnsettled reports whether something hangs on probes that call a server: a config on trial is in use, or a fallback
// that has not yet been healthy for a whole trial, or a config is under suspicion.
func isUnsettled(st *lkg.State) bool {
	if st.Case != nil {
		return true
	}
	if usesCurrent(st) {
		return st.OnTrial()
	}
	return len(st.Starts) > 0 && !st.Starts[len(st.Starts)-1].Settled
}
