// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

const (
	unavailable  = 5
	refusedShare = 0.02
	budgetSlack  = 1.15
	probes       = 5
)

// budget is S2: many nodes under one tight budget. kubectl runs once: it takes long, and nothing is judged by it.
func budget(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 10, PodsPerNode: 50, Ready: ready, End: time.Second, MaxUnavailable: new(intstr.FromInt32(unavailable))}
	patience := 4 * time.Minute
	if b.quick {
		shape.Nodes, shape.PodsPerNode, patience = 5, 20, 40*time.Second
	}
	var rounds figures[time.Duration]
	results, err := b.compare(ctx, trial{
		shape: shape, side: ours(settled(0)), limit: unlimited(), timeout: 10 * time.Minute,
		after: func(ctx context.Context, p *stage.Play) error {
			round, err := roundTrip(ctx, p)
			rounds = append(rounds, round)
			return err
		},
	})
	if err != nil {
		return err
	}
	other, err := b.try(ctx, trial{shape: shape, side: peer(kubectlRetry), limit: unlimited(), timeout: patience})
	if err != nil {
		return err
	}
	b.printBudget(shape, results[0], other, rounds)
	return nil
}

// printBudget judges the time by what the budget allows at best: as many rounds as it takes, of a pod that ends, its replacement that
// becomes ready, and the controllers' lag, all as measured in the same run.
func (b *bench) printBudget(shape stage.Shape, results []result, other result, rounds figures[time.Duration]) {
	what := fmt.Sprintf("%dx%d pods, maxUnavailable %d, T=%v, ready after %v", shape.Nodes, shape.PodsPerNode, unavailable, shape.End, shape.Ready)
	broken := func(r result) int { return max(0, shape.Pods()-unavailable-r.lowest) }
	mine := each(results, broken)
	b.print(line{
		name: "S2.broken", ours: mine.String(), peer: fmt.Sprint(broken(other)), bar: "0", good: sound(results) && mine.most() == 0,
		more: what + "; pods below the budget at the worst moment",
	})
	refused := func(r result) float64 { return float64(r.counts.Codes[429]) / float64(max(1, r.counts.Evictions)) }
	share := each(results, refused)
	b.print(line{
		name: "S2.refused", ours: share.String(), peer: fmt.Sprintf("%.3f", refused(other)), bar: fmt.Sprint(refusedShare), good: share.most() <= refusedShare,
		more: fmt.Sprintf("share of 429 in the evictions; %s of ours, %d of the peer's", each(results, func(r result) int { return r.counts.Evictions }), other.counts.Evictions),
	})
	turns := (shape.Pods() + unavailable - 1) / unavailable
	lag := rounds.median() - shape.Ready
	best := time.Duration(turns) * (shape.End + shape.Ready + lag)
	took := each(results, wall)
	over := float64(took.median()) / float64(best)
	ending := "finished"
	if other.failed > 0 {
		ending = fmt.Sprintf("%d of %d nodes failed: %.90v", other.failed, shape.Nodes, other.why)
	}
	b.print(line{
		name: "S2.wall", ours: took.String(), peer: other.wall.Round(time.Millisecond).String(), ratio: fmt.Sprintf("%.3f", over),
		bar: fmt.Sprint(budgetSlack), good: sound(results) && over <= budgetSlack,
		more: fmt.Sprintf("ratio to %d rounds of T+ready+lag of %s; to rounds as measured, in which a replacement does not wait for T: %.3f; peer: %s",
			turns, show(lag), float64(took.median())/float64(time.Duration(turns)*rounds.median()), ending),
	})
}

// roundTrip measures how long a budget takes that is used up at once until it is whole again, when nobody else asks anything.
func roundTrip(ctx context.Context, p *stage.Play) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var took figures[time.Duration]
	whole := func(seen stage.Seen) bool { return seen.Allowed == unavailable && seen.Healthy == p.Pods() }
	for range probes {
		if err := p.Observer.Await(ctx, whole); err != nil {
			return 0, fmt.Errorf("waiting for a whole budget: %w", err)
		}
		from := time.Now()
		if err := p.Evict(ctx, unavailable); err != nil {
			return 0, fmt.Errorf("using up the budget: %w", err)
		}
		spent := func(seen stage.Seen) bool { return seen.Healthy < p.Pods() }
		if err := errors.Join(p.Observer.Await(ctx, spent), p.Observer.Await(ctx, whole)); err != nil {
			return 0, fmt.Errorf("waiting for the budget to come back: %w", err)
		}
		took = append(took, time.Since(from))
	}
	return took.median(), nil
}
