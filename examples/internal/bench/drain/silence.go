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

const (
	silentNodes  = 1000
	silentAsks   = 1 // of a pod, in any silentWindow
	silentWindow = 2 * time.Minute
)

// runSilence is S10: many nodes, each with one pod under a budget of its own that never allows an eviction.
func runSilence(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: silentNodes, PodsPerNode: 1, Apps: silentNodes, Ready: ready, End: time.Second,
		MaxUnavailable: new(intstr.FromInt32(0))}
	long, other := 270*time.Second, time.Minute // an informer ends its watch after 5 minutes at the earliest
	if b.quick {
		shape.Nodes, shape.Apps, long, other = 200, 200, 150*time.Second, 30*time.Second
	}
	mine := &quiet{}
	ours, err := b.try(ctx, trial{shape: shape, side: ours(defaults()), limit: unlimited(), timeout: long,
		during: mine.countUntilOver})
	if err != nil {
		return err
	}
	theirs := &quiet{}
	_, err = b.try(ctx, trial{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: other,
		during: theirs.countUntilOver})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d nodes with a pod under a budget of 0 each, for %v, peer for %v", shape.Nodes, long, other)
	b.print(line{
		name: "S10.asks", ours: fmt.Sprint(mine.most), peer: fmt.Sprint(theirs.most), bar: fmt.Sprint(silentAsks),
		good: mine.most <= silentAsks && mine.asked == shape.Pods() && ours.left == shape.Pods(),
		more: fmt.Sprintf("evictions of one pod in any %v at most; %d of %d pods were asked about, peer %d; "+
			"in all %d requests: %s, peer %d: %s; %s", silentWindow, mine.asked, shape.Pods(), theirs.asked,
			mine.counts.Total, mine, theirs.counts.Total, theirs, what),
	})
	b.print(line{
		name: "S10.watches", ours: fmt.Sprint(mine.counts.Watches), peer: fmt.Sprint(theirs.counts.Watches), bar: "0",
		good: mine.counts.Watches == 0,
		more: fmt.Sprintf("beside those of the cache, of which there are %d; %s", ours.cache.Watches, what),
	})
	return nil
}

// quiet is what blocked drains have asked of the API server until their time was over.
type quiet struct {
	counts stage.Counts
	most   int // evictions of one pod in any silentWindow
	asked  int // pods
}

// String counts the requests by kind.
func (q *quiet) String() string {
	c := &q.counts
	return fmt.Sprintf("%d evictions %v, %d reads, %d writes", c.Evictions, c.Codes, c.Reads, c.Writes)
}

// countUntilOver counts until the drain is given up: what comes then opens the nodes again.
func (q *quiet) countUntilOver(ctx context.Context, s scene) error {
	from := time.Now()
	select {
	case <-s.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	until := time.Now()
	q.counts = s.client.Counter.Between(from, until)
	sent := map[string][]time.Time{}
	for _, r := range s.client.Counter.Requests() {
		if r.Kind == stage.Evict && !r.Sent.Before(from) && !r.Sent.After(until) {
			sent[r.Pod] = append(sent[r.Pod], r.Sent)
		}
	}
	q.asked = len(sent)
	for _, times := range sent {
		q.most = max(q.most, mostWithin(times, silentWindow))
	}
	return nil
}

// mostWithin is how many of the times lie within a window, wherever that begins.
func mostWithin(times []time.Time, window time.Duration) int {
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
