// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/bench/runner"
	"github.com/belayproject/belay/lkg"
)

// The bars of C2.
const (
	mostDecision    = 10 * time.Microsecond
	mostAllocations = 0
)

// decisions is C2: a decision on a node where nothing has changed since the last known good config was found to be good.
func (b *bench) decisions(context.Context) error {
	good := lkg.Ref{Namespace: "configs", Name: "good", UID: "5f2d6f3e-7c1b-4a55-9d0a-0a5e2f0c8b11", ResourceVersion: "1", Key: "config",
		Digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
	s := lkg.State{LastKnownGood: good}
	s.Current.Ref = good
	in := lkg.Input{State: s, Recorded: true, Limits: func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }}
	check := func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit} }
	if v := lkg.Decide(in, check); v.Use != good {
		return fmt.Errorf("the decision is for %+v, want %+v", v.Use, good)
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
