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

	"github.com/belayproject/belay/internal/bench/drain/stage"
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
	wakes   figures[time.Duration]
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
	slow := mine.wakes.quantile(0.99)
	b.print(line{
		name: "S4.wake-p99", ours: show(slow), peer: show(kubectl.wakes.quantile(0.99)), ratio: fmt.Sprintf("%.3f", float64(slow)/float64(max(1, kubectl.wakes.quantile(0.99)))),
		bar: wakeBar.String(), good: sound(results[0]) && len(mine.wakes) > 0 && slow < wakeBar,
		more: fmt.Sprintf("from a budget that opens to the next accepted eviction; %d openings, median %s; peer %d, median %s; peer at zero %d, p99 %s",
			len(mine.wakes), show(mine.wakes.median()), len(kubectl.wakes), show(kubectl.wakes.median()), len(zero.wakes), show(zero.wakes.quantile(0.99))),
	})
	return nil
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
	v.wakes = append(v.wakes, wakes(s.play.Observer.Opened(), s.client.Counter.Requests())...)
	return nil
}

// wakes gives, for each time that the budget opened, how long it took to the next eviction that was accepted.
func wakes(opened []time.Time, requests []stage.Request) (took figures[time.Duration]) {
	for _, at := range opened {
		for _, r := range requests {
			if r.Kind == stage.Evict && r.Code == http.StatusCreated && r.Done.After(at) {
				took = append(took, r.Done.Sub(at))
				break
			}
		}
	}
	return took
}
