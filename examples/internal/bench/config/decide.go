// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// The bars of C2.
const (
	mostDecision    = 10 * time.Microsecond
	mostAllocations = 0
)

// settled is what a node reads from its records at a start when nothing has changed since its config was found to be good.
func settled(ctx context.Context, good lkg.Ref, check func(lkg.Ref) lkg.Check) (lkg.State, error) {
	store, limits := lkgtest.NewStore(), func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }
	t, err := lkg.NewTracker(ctx, store, lkg.Options{Version: "bench"})
	if err != nil {
		return lkg.State{}, err
	}
	if err := errors.Join(t.Assign(ctx, good), t.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredCorrect}), t.Start(ctx, lkg.Exit{Kind: lkg.ExitPlanned})); err != nil {
		return lkg.State{}, err
	}
	if _, err := t.Decide(ctx, limits, check); err != nil {
		return lkg.State{}, err
	}
	if err := t.Promote(ctx); err != nil {
		return lkg.State{}, err
	}
	return lkg.Load(ctx, store, "bench")
}

// decisions is C2: a decision on a node where nothing has changed since the last known good config was found to be good.
func (b *bench) decisions(ctx context.Context) error {
	good := lkg.Ref{Namespace: "configs", Name: "good", UID: "5f2d6f3e-7c1b-4a55-9d0a-0a5e2f0c8b11", ResourceVersion: "1", Key: "config",
		Digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
	check := func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit} }
	s, err := settled(ctx, good, check)
	if err != nil {
		return fmt.Errorf("settling a node: %w", err)
	}
	in := lkg.Input{State: s, Recorded: true, Limits: func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }}
	if v := lkg.Decide(in, check); v.Use != good || v.OnTrial || v.Role != lkg.RoleCurrent {
		return fmt.Errorf("the decision is %+v, want %+v, which is good", v, good)
	}
	r := testing.Benchmark(func(tb *testing.B) {
		tb.ReportAllocs()
		for tb.Loop() {
			lkg.Decide(in, check)
		}
	})
	took := time.Duration(r.NsPerOp())
	b.Print(runner.Line{Name: "C2.decide", Ours: took.String(), Bar: "<=" + mostDecision.String(), Good: took <= mostDecision, More: "one decision, nothing has changed"})
	b.Print(runner.Line{
		Name: "C2.allocations", Ours: fmt.Sprint(r.AllocsPerOp()), Bar: fmt.Sprint(mostAllocations), Good: r.AllocsPerOp() <= mostAllocations,
		More: fmt.Sprintf("%d bytes a decision", r.AllocedBytesPerOp()),
	})
	return nil
}
