// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// grantBar is that of R4.
const grantBar = 250 * time.Millisecond

// A relay is when nodes have ended, slots were freed, and nodes were granted, each in order.
type relay struct {
	ended, freed, granted []time.Time

	attempts map[string]int64 // of nodes that have ended
	grants   map[string]int64
	slots    map[int64]bool // attempts
}

// latency is R4. There are more nodes than slots; each that ends makes room for the next.
func (b *bench) latency(ctx context.Context) error {
	o := rolloutstage.Options{Nodes: 500, Cap: 250, Bare: true, Verify: 90 * time.Second, Spread: 3 * time.Minute, Resident: true}
	if b.Quick {
		o.Nodes, o.Cap, o.Verify, o.Spread = 60, 20, 5*time.Second, 20*time.Second
	}
	return stage(ctx, o, func(f *fleet) error {
		p, err := f.spawn(ctx, rolloutstage.Task{})
		if err != nil {
			return err
		}
		if err := f.Begin(ctx, "v1", nil); err != nil {
			return err
		}
		if err := f.completed(ctx, p, "v1"); err != nil {
			return err
		}
		gauge, err := f.gauge(p)
		if err != nil {
			return err
		}
		r, err := f.relay(ctx)
		if err != nil {
			return err
		}
		busy, err := gauge.Since()
		if err != nil {
			return err
		}
		b.printLatency(o, r, busy)
		return errors.Join(p.Alive(), f.sound())
	})
}

// relay brings all nodes to v2, and watches that until each was granted.
func (f *fleet) relay(ctx context.Context) (*relay, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := f.look(watching, v1alpha1.NodeShadowsResource, v1alpha1.DisruptionLedgersResource)
	if err != nil {
		return nil, err
	}
	if err := f.Turn(ctx, "v2"); err != nil {
		return nil, err
	}
	r := &relay{attempts: map[string]int64{}, grants: map[string]int64{}, slots: map[int64]bool{}}
	_, err = until(ctx, seen, stamina, func(s sighting) bool {
		if s.resource == v1alpha1.DisruptionLedgersResource.Resource {
			r.ledger(s)
		} else {
			r.shadow(s)
		}
		return len(r.granted) >= f.Nodes
	})
	if err != nil {
		return nil, fmt.Errorf("%d of %d nodes were granted: %w", len(r.granted), f.Nodes, err)
	}
	return r, nil
}

// ledger notes which slots are gone.
func (r *relay) ledger(s sighting) {
	var l v1alpha1.DisruptionLedger
	if err := s.into(&l); err != nil {
		return // the fleet's own watch reports it
	}
	now := map[int64]bool{}
	for i := range l.Spec.Slots {
		now[l.Spec.Slots[i].Attempt] = true
	}
	for attempt := range r.slots {
		if !now[attempt] {
			r.freed = append(r.freed, s.at)
		}
	}
	r.slots = now
}

// shadow notes that a node was granted, or has ended.
func (r *relay) shadow(s sighting) {
	name := s.object.GetName()
	if grant := s.number("spec", "grant"); grant > r.grants[name] {
		r.grants[name] = grant
		r.granted = append(r.granted, s.at)
	}
	attempt, phase := s.number("status", "attempt"), protocol.Phase(s.text("status", "phase"))
	if attempt > r.attempts[name] && phase.AtRest() {
		r.attempts[name] = attempt
		r.ended = append(r.ended, s.at)
	}
}

// after pairs the n-th place that became free with the n-th grant that needed one: places are filled in the order in which they become free.
func (r *relay) after(free []time.Time, slots int) (took runner.Figures[time.Duration]) {
	for i, at := range r.granted[min(slots, len(r.granted)):] {
		if i < len(free) {
			took = append(took, max(0, at.Sub(free[i])))
		}
	}
	return took
}

func (b *bench) printLatency(o rolloutstage.Options, r *relay, busy string) {
	ended, freed := r.after(r.ended, o.Cap), r.after(r.freed, o.Cap)
	span := time.Duration(0)
	if len(ended) > 0 {
		span = r.ended[len(ended)-1].Sub(r.ended[0])
	}
	what := fmt.Sprintf("%d grants, of %d nodes in %d slots, of which %.1f a second came free in the mean; %s",
		len(ended), o.Nodes, o.Cap, float64(len(ended))/max(span.Seconds(), 1e-9), busy)
	b.Print(runner.Line{
		Name: "R4.grant-p99", Ours: runner.Show(ended.Quantile(0.99)), Bar: grantBar.String(), Good: len(ended) > 0 && ended.Quantile(0.99) < grantBar,
		More: fmt.Sprintf("from the end of a node, as its agent has stored it, to the next grant; p50 %s, most %s; %s",
			runner.Show(ended.Median()), runner.Show(ended.Most()), what),
	})
	b.Print(runner.Line{
		Name: "R4.freed-p99", Ours: runner.Show(freed.Quantile(0.99)), Bar: grantBar.String(), Good: len(freed) > 0 && freed.Quantile(0.99) < grantBar,
		More: fmt.Sprintf("the same from the version of the ledger in which the slot is gone; p50 %s, most %s",
			runner.Show(freed.Median()), runner.Show(freed.Most())),
	})
}
