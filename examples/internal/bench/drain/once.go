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
	setNodes   = 6
	setPods    = 5
	movesBar   = 1.05 // evictions of a pod
	setRatio   = 1.05 // of kubectl's wall time
	setTimeout = 3 * time.Minute
)

// runSet is S9: six nodes in one command, one at a time, where each node has room for the pods of another one.
func runSet(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: setNodes, PodsPerNode: setPods, Room: setPods, Ready: ready, End: time.Second}
	results, err := b.compare(ctx,
		trial{shape: shape, side: oursWith(plan{parallel: 1}), limit: unlimited(), timeout: setTimeout},
		trial{shape: shape, side: peerOfSet(kubectlRetry), limit: unlimited(), timeout: setTimeout},
	)
	if err != nil {
		return err
	}
	moves := func(r result) float64 { return float64(r.counts.Evictions) / float64(shape.Pods()) }
	mine, theirs := each(results[0], moves), each(results[1], moves)
	what := fmt.Sprintf("%d nodes of %d pods that take %v, each with room for %d more, no budget", shape.Nodes,
		shape.PodsPerNode, shape.End, shape.Room)
	b.print(line{
		name: "S9.evictions", ours: mine.String(), peer: theirs.String(),
		ratio: fmt.Sprintf("%.3f", ratio(mine, theirs)), bar: fmt.Sprint(movesBar), good: sound(results[0]) && mine.most() <= movesBar, more: "of a pod; " + what,
	})
	b.printWall("S9.wall", results[0], results[1], setRatio, "one node at a time; "+what)
	return nil
}

func countFailed(r result) int { return r.failed }

// printWall judges the wall time by a share of the peer's, also where the peer has not drained every node.
func (b *bench) printWall(name string, ours, peer []result, bar float64, more string) {
	mine, theirs := each(ours, wall), each(peer, wall)
	share := ratio(mine, theirs)
	b.print(line{
		name: name, ours: mine.String(), peer: theirs.String(), ratio: fmt.Sprintf("%.3f", share), bar: fmt.Sprint(bar),
		good: sound(ours) && share <= bar,
		more: fmt.Sprintf("%s; nodes that the peer failed to drain: %s", more, each(peer, countFailed)),
	})
}
