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
	"github.com/belayproject/belay/internal/backoff"
)

const (
	lead     = 2 * time.Second                // for every side to have asked once
	attempts = 2*kubectlRetry + 2*time.Second // for kubectl to have asked twice more
)

// namesake is S7: while the pods of a StatefulSet are blocked they are lost and come back on another node, under their names; then
// the budget opens.
func namesake(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 1, PodsPerNode: 5, Ready: ready, End: time.Second, MaxUnavailable: new(intstr.FromInt32(1)), Held: true, Stateful: true}
	displace := func(ctx context.Context, s scene) error {
		defer s.end()
		if !backoff.Sleep(ctx, lead) {
			return ctx.Err()
		}
		if err := s.play.Displace(ctx); err != nil {
			return fmt.Errorf("moving the pods: %w", err)
		}
		if err := s.play.Release(ctx); err != nil {
			return fmt.Errorf("opening the budget: %w", err)
		}
		select {
		case <-s.ended:
		case <-time.After(attempts):
		}
		return nil
	}
	results, err := b.compare(ctx,
		trial{shape: shape, side: ours(settled(0)), limit: unlimited(), timeout: time.Minute, during: displace},
		trial{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: time.Minute, during: displace},
	)
	if err != nil {
		return err
	}
	strays := func(r result) int { return r.strays }
	mine, theirs := each(results[0], strays), each(results[1], strays)
	b.print(line{
		name: "S7.strays", ours: mine.String(), peer: theirs.String(), bar: "0", good: sound(results[0]) && mine.most() == 0,
		more: fmt.Sprintf("of %d pods that came back elsewhere, evicted there; the peer was expected to evict at least one", shape.Pods()),
	})
	return nil
}
