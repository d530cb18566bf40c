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

// throttles are the limits of S5 and the bar at each. The first is client-go's default, for which the bar is meant. At the second, kubectl has
// requests enough that the pods' own time is most of what is measured: no drain can be below the ratio that the line prints, and the
// bar is to be no slower.
func throttles() map[limit]float64 {
	return map[limit]float64{{5, 10}: 0.75, {20, 30}: 1.00}
}

// throttled is S5: the same node through clients that are throttled, as most are.
func throttled(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 1, PodsPerNode: fullNode, Ready: ready, End: 10 * time.Second}
	for _, l := range []limit{{5, 10}, {20, 30}} {
		results, err := b.compare(ctx,
			trial{shape: shape, side: ours(settled(0)), limit: l, timeout: 3 * time.Minute},
			trial{shape: shape, side: peer(kubectlRetry), limit: l, timeout: 3 * time.Minute},
		)
		if err != nil {
			return err
		}
		mine, theirs := each(results[0], wall), each(results[1], wall)
		share, bar := ratio(mine, theirs), throttles()[l]
		total := func(r result) int { return r.counts.Total }
		b.print(line{
			name: fmt.Sprintf("S5.wall-%.0f-%d", l.qps, l.burst), ours: mine.String(), peer: theirs.String(), ratio: fmt.Sprintf("%.3f", share),
			bar: fmt.Sprintf("%.2f", bar), good: sound(results[0]) && sound(results[1]) && share <= bar,
			more: fmt.Sprintf("P=%d T=%v; requests %s, peer %s; no drain can be below a ratio of %.3f, since its evictions alone take %v and the last pod T",
				fullNode, shape.End, each(results[0], total), each(results[1], total), float64(l.evictions(fullNode)+shape.End)/float64(theirs.median()), l.evictions(fullNode)),
		})
	}
	return nil
}

// evictions is how long the limit holds up that many.
func (l limit) evictions(n int) time.Duration {
	return time.Duration(float64(n-l.burst) / float64(l.qps) * float64(time.Second)).Round(100 * time.Millisecond)
}
