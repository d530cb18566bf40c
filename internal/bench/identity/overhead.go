// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// policyBar is how much longer a guarded write may take.
const policyBar = 1.15

// A round is what one write has cost in one round. Each figure of the guarded agent has one of the free agent at the same place, from the
// moment before or after it.
type round struct {
	on, by    figures[time.Duration] // while the policy is there: guarded, and free
	off, free figures[time.Duration] // while it is not
}

// round writes without the policy, and with it, as both agents in turns.
func (o *office) round(ctx context.Context, n int, onFirst bool) (map[string]*round, error) {
	all := map[string]*round{}
	for _, w := range writes() {
		all[w.name] = &round{}
	}
	for _, on := range []bool{onFirst, !onFirst} {
		if err := o.bind(ctx, on); err != nil {
			return nil, err
		}
		for _, w := range writes() {
			if err := o.block(ctx, w, n, on, all[w.name]); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return all, nil
}

// block writes as both agents in turns. Who is first changes too, as a write may leave the server something to do.
func (o *office) block(ctx context.Context, w write, n int, on bool, r *round) error {
	guarded, free := &r.off, &r.free
	if on {
		guarded, free = &r.on, &r.by
	}
	for i := range n {
		turns := []func() error{
			func() error { return o.time(ctx, w, o.guarded, guarded) },
			func() error { return o.time(ctx, w, o.free, free) },
		}
		for j := range turns {
			if err := turns[(i+j)%2](); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *office) time(ctx context.Context, w write, c *clerk, took *figures[time.Duration]) error {
	n := int(o.world.serial.Add(1))
	from := time.Now()
	err := w.do(ctx, o, c, n)
	*took = append(*took, time.Since(from))
	return err
}

// overhead is the line on one write. The verdict is on pairs of writes a moment apart: the blocks with the policy and those without it are
// seconds apart, and a machine drifts by more than the bar in that time. What the two accounts differ by without the policy, such as in their
// roles and flows, is taken off.
func overhead(name string, rounds []round, writes int) line {
	p50 := func(of func(round) figures[time.Duration]) figures[time.Duration] {
		return each(rounds, func(r round) time.Duration { return of(r).median() })
	}
	on, by := p50(func(r round) figures[time.Duration] { return r.on }), p50(func(r round) figures[time.Duration] { return r.by })
	off, free := p50(func(r round) figures[time.Duration] { return r.off }), p50(func(r round) figures[time.Duration] { return r.free })
	beside := each(rounds, func(r round) float64 { return paired(r.on, r.by).median() })
	apart := each(rounds, func(r round) float64 { return paired(r.off, r.free).median() })
	var ratios figures[float64]
	for i := range rounds {
		ratios = append(ratios, beside[i]/apart[i])
	}
	return line{
		name: "I6." + name, ours: on.String(), peer: by.String(), ratio: ratios.String(),
		bar: fmt.Sprint(policyBar), good: len(ratios) > 0 && ratios.median() <= policyBar,
		more: fmt.Sprintf("p50 of %d writes that the policy checks, each beside one of an account that it is not for, %d rounds: ratio %s; while the policy is away %s and %s, ratio %s",
			writes, len(rounds), beside, off, free, apart),
	}
}

// paired are the ratios of figures at the same place.
func paired(ours, peer figures[time.Duration]) figures[float64] {
	var ratios figures[float64]
	for i := range min(len(ours), len(peer)) {
		ratios = append(ratios, float64(ours[i])/float64(peer[i]))
	}
	return ratios
}
