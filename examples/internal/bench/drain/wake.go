// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

const (
	asksPerMinute = 2 // of a blocked pod
	wakeBar       = 500 * time.Millisecond
	hammered      = 10 * time.Second // how long kubectl's zero value is let loose
)

// A vigil is what was measured of pods that are blocked, and then let go one by one.
type vigil struct {
	side    side
	blocked time.Duration // how long they are
	after   time.Duration // how long the budget is then watched
	asks    figures[float64]
	wakes   figures[time.Duration] // from a budget that opens to the next eviction that the server has accepted
	reacts  figures[time.Duration] // to the moment in which it was asked for
}

// wake is S4.
func wake(ctx context.Context, b *bench) error {
	blocked, after := time.Minute, time.Minute
	if b.quick {
		blocked, after = 30*time.Second, 20*time.Second
	}
	mine := &vigil{side: ours(settled(0)), blocked: blocked, after: 2 * time.Minute}
	kubectl := &vigil{side: peer(kubectlRetry), blocked: blocked, after: after}
	zero := &vigil{side: peer(0), blocked: hammered, after: after}
	shape := stage.Shape{Nodes: 1, PodsPerNode: 20, Ready: ready, End: time.Second, MaxUnavailable: new(intstr.FromInt32(1)), Held: true}
	results, err := b.compare(ctx, mine.trial(shape), kubectl.trial(shape), zero.trial(shape))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d pods blocked for %v", shape.Pods(), blocked)
	b.print(line{
		name: "S4.asks", ours: mine.asks.String(), peer: kubectl.asks.String(), ratio: fmt.Sprintf("%.3f", ratio(mine.asks, kubectl.asks)),
		bar: fmt.Sprint(asksPerMinute), good: mine.asks.most() <= asksPerMinute, more: "requests for a blocked pod and minute; " + what,
	})
	b.print(line{
		name: "S4.asks-zero-value", ours: mine.asks.String(), peer: zero.asks.String(), ratio: fmt.Sprintf("%.6f", ratio(mine.asks, zero.asks)),
		bar: fmt.Sprint(asksPerMinute), good: mine.asks.most() <= asksPerMinute,
		more: fmt.Sprintf("the same beside kubectl's library with its delay left at zero, blocked for %v", hammered),
	})
	b.printWake(mine, kubectl, zero, sound(results[0]))
	return nil
}

// printWake judges the slowest in a hundred, or, of fewer, the slowest in twenty: the server itself takes half a second where an eviction
// meets a write of the disruption controller.
func (b *bench) printWake(mine, kubectl, zero *vigil, good bool) {
	name, rank := "S4.wake-p99", 0.99
	if len(mine.wakes) < 100 {
		name, rank = "S4.wake-p95", 0.95
	}
	slow, other := mine.wakes.quantile(rank), kubectl.wakes.quantile(rank)
	b.print(line{
		name: name, ours: show(slow), peer: show(other), ratio: fmt.Sprintf("%.3f", float64(slow)/float64(max(1, other))),
		bar: wakeBar.String(), good: good && len(mine.wakes) > 0 && slow < wakeBar,
		more: fmt.Sprintf("from a budget that opens to the next accepted eviction; %d openings, median %s, most %s; asked for after %s, most %s; peer %d, median %s; peer at zero %d, median %s, %s",
			len(mine.wakes), show(mine.wakes.median()), show(mine.wakes.most()), show(mine.reacts.quantile(rank)), show(mine.reacts.most()),
			len(kubectl.wakes), show(kubectl.wakes.median()), len(zero.wakes), show(zero.wakes.median()), show(zero.wakes.quantile(rank))),
	})
}

// trial makes a run whose figures go to the vigil.
func (v *vigil) trial(shape stage.Shape) trial {
	return trial{shape: shape, side: v.side, limit: unlimited(), timeout: v.blocked + v.after, during: v.watch}
}

func (v *vigil) watch(ctx context.Context, s scene) error {
	from := time.Now()
	select {
	case <-s.ended:
		return errors.New("the drain ended while its pods were blocked")
	case <-time.After(v.blocked):
	}
	until := time.Now()
	asked := s.client.Counter.Between(from, until).Total
	v.asks = append(v.asks, float64(asked)/float64(s.play.Pods())/until.Sub(from).Minutes())
	if err := s.play.Release(ctx); err != nil {
		return fmt.Errorf("opening the budget: %w", err)
	}
	<-s.ended
	v.take(s.play.Observer.Opened(), s.client.Counter.Requests())
	return nil
}

// take adds, for each time that the budget opened, how long it took to the next eviction that was accepted.
func (v *vigil) take(opened []time.Time, requests []stage.Request) {
	for _, at := range opened {
		for _, r := range requests {
			if r.Kind == stage.Evict && r.Code == http.StatusCreated && r.Done.After(at) {
				v.wakes, v.reacts = append(v.wakes, r.Done.Sub(at)), append(v.reacts, max(0, r.Sent.Sub(at)))
				break
			}
		}
	}
}
