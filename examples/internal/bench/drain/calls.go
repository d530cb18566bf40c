// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

const (
	fullNode   = 110 // pods, the kubelet's default
	ready      = 500 * time.Millisecond
	callsSlack = 5    // requests beside one for each pod: cordon, a consistent read, the mark, and two
	callsRatio = 0.05 // of kubectl's
)

// calls is S1: what a node without any budget costs the API server.
func calls(ctx context.Context, b *bench) error {
	end := 30 * time.Second
	if b.quick {
		end = 20 * time.Second
	}
	shape := stage.Shape{Nodes: 1, PodsPerNode: fullNode, Ready: ready, End: end}
	timeout := end + time.Minute
	results, err := b.compare(ctx,
		trial{shape: shape, side: ours(defaults()), limit: unlimited(), timeout: timeout},
		trial{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: timeout},
	)
	if err != nil {
		return err
	}
	total := func(r result) int { return r.counts.Total }
	mine, theirs := each(results[0], total), each(results[1], total)
	good := sound(results[0])
	what := fmt.Sprintf("P=%d T=%v no budget", fullNode, end)
	b.print(line{
		name: "S1.requests", ours: mine.String(), bar: fmt.Sprint(fullNode + callsSlack), good: good && mine.most() <= fullNode+callsSlack,
		more: fmt.Sprintf("%s; %s reads, %s writes, %s watches; cache %s before, once in a process",
			what, each(results[0], func(r result) int { return r.counts.Reads }), each(results[0], func(r result) int { return r.counts.Writes }),
			each(results[0], func(r result) int { return r.counts.Watches }), each(results[0], func(r result) int { return r.cache.Total })),
	})
	share := ratio(mine, theirs)
	b.print(line{
		name: "S1.ratio", ours: mine.String(), peer: theirs.String(), ratio: fmt.Sprintf("%.3f", share), bar: fmt.Sprint(callsRatio),
		good: good && sound(results[1]) && share <= callsRatio,
		more: fmt.Sprintf("%s; wall %s, peer %s", what, each(results[0], wall), each(results[1], wall)),
	})
	return nil
}

func wall(r result) time.Duration { return r.wall }

// sound reports whether every node was drained, in every repeat, and is empty.
func sound(results []result) bool {
	for _, r := range results {
		if r.failed > 0 || r.left > 0 {
			return false
		}
	}
	return true
}
