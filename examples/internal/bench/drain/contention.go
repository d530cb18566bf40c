// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

// contentionRatio is of kubectl's wall time.
const contentionRatio = 1.05

// contention is S3: many nodes under one budget that is wide open, so that only the server's updates of that budget are in the way.
// kubectl runs without a limit, as ten commands each of which has a burst of 300 do, and as one controller that shares a client of
// 20/30; -quick leaves the second out.
func contention(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 10, PodsPerNode: 50, Ready: ready, End: 2 * time.Second, MaxUnavailable: new(intstr.FromString("100%"))}
	timeout := 3 * time.Minute
	trials := []trial{
		{shape: shape, side: ours(settled(0)), limit: unlimited(), timeout: timeout},
		{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: timeout},
		{shape: shape, side: ours(settled(0)), limit: limit{20, 30}, timeout: timeout},
		{shape: shape, side: peer(kubectlRetry), limit: limit{20, 30}, timeout: timeout},
	}
	names := []string{"", "-20-30"}
	if b.quick {
		trials, names = trials[:2], names[:1]
	}
	results, err := b.compare(ctx, trials...)
	if err != nil {
		return err
	}
	for i, name := range names {
		mine, theirs := results[2*i], results[2*i+1]
		failed := func(r result) int { return r.failed }
		lost := each(mine, failed)
		b.print(line{
			name: "S3.failed" + name, ours: lost.String(), peer: each(theirs, failed).String(), bar: "0",
			good: sound(mine) && lost.most() == 0,
			more: fmt.Sprintf("of %d nodes of %d pods; wall %s, peer %s; evictions %s, peer %s; answers 409 and 504 %s, peer %s", shape.Nodes, shape.PodsPerNode,
				each(mine, wall), each(theirs, wall), each(mine, evictions), each(theirs, evictions), each(mine, contended), each(theirs, contended)),
		})
		b.printWall("S3.wall"+name, mine, theirs, contentionRatio, "under one budget that is wide open")
	}
	return nil
}

func evictions(r result) int { return r.counts.Evictions }

func contended(r result) int { return r.counts.Codes[409] + r.counts.Codes[504] }
