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

// A round is what one write has cost in one round: while the policy is there, and while it is away. Figures at the same place of the three are
// from the same moment.
type round struct{ on, off turns }

// turns are what was written in turns.
type turns struct {
	guarded figures[time.Duration] // the write of the agent that the policy is for
	other   figures[time.Duration] // the same write of an account that it is not for
	pace    figures[time.Duration] // a write that no policy is for: how fast the machine is just then
}

// round writes without the policy, and with it.
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

// block writes all three in turns. Who is first changes too, as a write may leave the server something to do.
func (o *office) block(ctx context.Context, w write, n int, on bool, r *round) error {
	s := &r.off
	if on {
		s = &r.on
	}
	writes := []func() error{
		func() error { return o.time(ctx, w.do, o.guarded, &s.guarded) },
		func() error { return o.time(ctx, w.do, o.free, &s.other) },
		func() error { return o.time(ctx, beat(w), o.guarded, &s.pace) },
	}
	for i := range n {
		for j := range writes {
			if err := writes[(i+j)%len(writes)](); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *office) time(ctx context.Context, do doing, c *clerk, took *figures[time.Duration]) error {
	n := int(o.world.serial.Add(1))
	from := time.Now()
	err := do(ctx, o, c, n)
	*took = append(*took, time.Since(from))
	return err
}

// overhead is the line on one write. The blocks with the policy and those without it are seconds apart, and a machine drifts by more than the
// bar in that time. Therefore each write is compared with the one for the pace a moment before or after it, and how that has changed by the
// policy is the verdict.
func overhead(name string, rounds []round, writes int) line {
	p50 := func(of func(round) figures[time.Duration]) figures[time.Duration] {
		return each(rounds, func(r round) time.Duration { return of(r).median() })
	}
	ratios := dearer(rounds, func(s turns) figures[time.Duration] { return s.guarded })
	others := dearer(rounds, func(s turns) figures[time.Duration] { return s.other })
	return line{
		name:  "I6." + name,
		ours:  p50(func(r round) figures[time.Duration] { return r.on.guarded }).String(),
		peer:  p50(func(r round) figures[time.Duration] { return r.off.guarded }).String(),
		ratio: ratios.String(), bar: fmt.Sprint(policyBar), good: len(ratios) > 0 && ratios.median() <= policyBar,
		more: fmt.Sprintf("p50 of %d writes that the policy checks, and while it is away, %d rounds; the ratio is by the pace, %s and %s; the same write of an account that the policy is not for: ratio %s",
			writes, len(rounds), p50(func(r round) figures[time.Duration] { return r.on.pace }), p50(func(r round) figures[time.Duration] { return r.off.pace }), others),
	}
}

// dearer is how many times the pace a write takes with the policy, by how many times it takes without.
func dearer(rounds []round, of func(turns) figures[time.Duration]) figures[float64] {
	return each(rounds, func(r round) float64 {
		return paired(of(r.on), r.on.pace).median() / paired(of(r.off), r.off.pace).median()
	})
}

// paired are the ratios of figures at the same place.
func paired(ours, peer figures[time.Duration]) figures[float64] {
	var ratios figures[float64]
	for i := range min(len(ours), len(peer)) {
		ratios = append(ratios, float64(ours[i])/float64(peer[i]))
	}
	return ratios
}
