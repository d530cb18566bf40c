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
	easyPods  = 20
	easyRatio = 1.05 // of kubectl's wall time
)

// runEasy is S11: how long a node takes where nothing is in the way, with the default policy.
func runEasy(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 1, PodsPerNode: easyPods, Ready: ready, End: time.Second}
	results, err := b.compare(ctx,
		trial{shape: shape, side: ours(defaults()), limit: unlimited(), timeout: time.Minute},
		trial{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: time.Minute},
	)
	if err != nil {
		return err
	}
	mine, theirs := each(results[0], wall), each(results[1], wall)
	share := ratio(mine, theirs)
	b.print(line{
		name: "S11.wall", ours: mine.String(), peer: theirs.String(), ratio: fmt.Sprintf("%.3f", share),
		bar:  fmt.Sprint(easyRatio),
		good: sound(results[0]) && sound(results[1]) && share <= easyRatio,
		more: fmt.Sprintf("%d pods that take %v, no budget", easyPods, shape.End),
	})
	return nil
}
