// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

const (
	crowdRatio   = 0.75 // of kubectl's wall time
	crowdTimeout = 15 * time.Minute
	crowdRepeats = 2
	crowdRate    = 200 // evictions a second, as a user allows who drains 50 nodes at once
)

// runCrowd is S12: many nodes, of which some are drained at once, beside as many kubectl commands. Each app has a
// budget.
func runCrowd(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 500, PodsPerNode: 12, Apps: 50, Ready: ready, End: time.Second,
		MaxUnavailable: new(intstr.FromString("10%"))}
	atOnce := 50
	if b.quick {
		shape.Nodes, shape.Apps, atOnce = 100, 10, 20
	}
	repeats := b.repeats
	b.repeats = min(repeats, crowdRepeats)
	defer func() { b.repeats = repeats }()
	rate := drain.SchedulerOptions{Rate: crowdRate, Burst: 2 * crowdRate}
	side := oursWith(plan{parallel: atOnce, policy: settled(0), rate: rate})
	results, err := b.compare(ctx,
		trial{shape: shape, side: side, limit: unlimited(), timeout: crowdTimeout},
		trial{shape: shape, side: peerOfCrowd(kubectlRetry, atOnce), limit: unlimited(), timeout: crowdTimeout},
	)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d nodes of %d pods, %d at once, %d budgets of %v", shape.Nodes, shape.PodsPerNode, atOnce,
		shape.Apps, shape.MaxUnavailable)
	refused := func(r result) int { return r.counts.Codes[429] }
	mine, theirs := each(results[0], refused), each(results[1], refused)
	b.print(line{
		name: "S12.refused", ours: mine.String(), peer: theirs.String(), bar: "0",
		good: sound(results[0]) && mine.most() == 0,
		more: fmt.Sprintf("evictions %s, peer %s; %s", each(results[0], evictions), each(results[1], evictions), what),
	})
	b.printWall("S12.wall", results[0], results[1], crowdRatio, what)
	return nil
}
