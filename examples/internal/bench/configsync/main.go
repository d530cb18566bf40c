// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/belayproject/belay/lkg"
)

// bar is the most that a decision may cost, as a share of reading the records.
const bar = 0.10

func main() {
	short, err := run(context.Background())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench configsync:", err)
		os.Exit(2)
	case short:
		os.Exit(1)
	}
}

// run measures a decision in each of the three situations of a node.
func run(ctx context.Context) (short bool, err error) {
	for _, story := range []struct {
		name string
		tell func(context.Context, *lkg.Tracker) error
	}{{"known-good", promote}, {"on-trial", assign}, {"rolled-back", reject}} {
		m := memory{}
		t, err := lkg.NewTracker(ctx, m, lkg.Options{Version: "v1.0.0", BootID: "boot"})
		if err != nil {
			return false, err
		}
		if err := story.tell(ctx, t); err != nil {
			return false, fmt.Errorf("preparing %q: %w", story.name, err)
		}
		missed, err := measure(ctx, story.name, m)
		if err != nil {
			return false, err
		}
		short = short || missed
	}
	return short, nil
}

// measure prints the line of one situation.
func measure(ctx context.Context, name string, m memory) (missed bool, err error) {
	state, err := lkg.Load(ctx, m, "v1.0.0")
	if err != nil {
		return false, err
	}
	in := lkg.Input{State: state, Recorded: true, Limits: limits}
	ours := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lkg.Decide(in, check)
		}
	})
	peer := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := lkg.Load(ctx, m, "v1.0.0"); err != nil {
				b.Fatal(err)
			}
		}
	})
	ratio := float64(ours.NsPerOp()) / float64(peer.NsPerOp())
	verdict := "ok"
	if ratio > bar {
		verdict = "SHORT"
	}
	fmt.Printf("bench configsync.decide.%s ours=%dns peer=%dns ratio=%.3f bar=%.2f %s (%d allocs, %d bytes a decision; peer: decoding the records)\n",
		name, ours.NsPerOp(), peer.NsPerOp(), ratio, bar, verdict, ours.AllocsPerOp(), ours.AllocedBytesPerOp())
	return ratio > bar, nil
}

func check(lkg.Ref) lkg.Check   { return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit} }
func limits(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }

func ref(uid string) lkg.Ref {
	return lkg.Ref{Namespace: "kube-system", Name: "kubelet-" + uid, UID: uid, ResourceVersion: "1", Key: "kubelet",
		Digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
}

// start is one start of what is configured.
func start(ctx context.Context, t *lkg.Tracker, kind lkg.ExitKind) error {
	if err := t.Start(ctx, lkg.Exit{Kind: kind, Detail: "exit status 1"}); err != nil {
		return err
	}
	_, err := t.Decide(ctx, limits, check)
	return err
}

// promote makes a config the last known good one.
func promote(ctx context.Context, t *lkg.Tracker) error {
	if err := adopt(ctx, t, "11111111-1111-4111-8111-111111111111"); err != nil {
		return err
	}
	return t.Promote(ctx)
}

func adopt(ctx context.Context, t *lkg.Tracker, uid string) error {
	if err := t.Assign(ctx, ref(uid)); err != nil {
		return err
	}
	if err := t.PlanRestart(ctx, lkg.CauseAdoption); err != nil {
		return err
	}
	return start(ctx, t, lkg.ExitClean)
}

// assign puts another config on trial and lets it crash as often as is tolerated.
func assign(ctx context.Context, t *lkg.Tracker) error {
	if err := promote(ctx, t); err != nil {
		return err
	}
	if err := adopt(ctx, t, "22222222-2222-4222-8222-222222222222"); err != nil {
		return err
	}
	for range 10 {
		if err := start(ctx, t, lkg.ExitCrash); err != nil {
			return err
		}
	}
	return nil
}

// reject lets it crash once more, beside fifty configs that were rejected before.
func reject(ctx context.Context, t *lkg.Tracker) error {
	for i := range 50 {
		if err := t.Reject(ctx, ref(fmt.Sprintf("33333333-3333-4333-8333-%012d", i)), "measured"); err != nil {
			return err
		}
	}
	if err := assign(ctx, t); err != nil {
		return err
	}
	return start(ctx, t, lkg.ExitCrash)
}

// memory is a lkg.Store.
type memory map[string][]byte

func (m memory) Get(_ context.Context, stream string) ([]byte, error) {
	b, ok := m[stream]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return b, nil
}

func (m memory) Put(_ context.Context, stream string, payload []byte) error {
	m[stream] = payload
	return nil
}
