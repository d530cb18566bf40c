// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
)

// requests is I1.
func requests(ctx context.Context, b *bench) error {
	all, err := b.steady(ctx)
	if err != nil {
		return err
	}
	mine, theirs, elect := all["ours"], all["component-helpers"], all["leaderelection"]
	one := func(f figures[float64]) bool { return math.Abs(f.least()-1) < 0.005 && math.Abs(f.most()-1) < 0.005 }
	sent := func(s steady) float64 { return s.requests }
	served := func(s steady) float64 { return s.served }
	gets := func(s steady) float64 { return s.gets }
	of := fmt.Sprintf("for each of %.0f renewals that a watch of another process saw", each(mine, func(s steady) float64 { return s.renewals }).median())
	b.print(line{
		name: "I1.requests", ours: each(mine, sent).String(), peer: each(theirs, sent).String(), ratio: over(each(mine, sent).median(), each(theirs, sent).median()),
		bar: "1.00", good: one(each(mine, sent)), more: fmt.Sprintf("sent, %s; leaderelection %s", of, each(elect, sent)),
	})
	b.print(line{
		name: "I1.requests-served", ours: each(mine, served).String(), peer: each(theirs, served).String(), ratio: over(each(mine, served).median(), each(theirs, served).median()),
		bar: "1.00", good: one(each(mine, served)), more: fmt.Sprintf("answered, by the API server's apiserver_request_total; leaderelection %s", each(elect, served)),
	})
	b.print(line{
		name: "I1.gets", ours: each(mine, gets).String(), peer: each(theirs, gets).String(), bar: "0", good: each(mine, gets).most() == 0,
		more: fmt.Sprintf("GETs for a renewal, by both counts; leaderelection %s", each(elect, gets)),
	})
	b.print(pace(mine, theirs, elect))
	return nil
}

// offPace is how far the number of renewals may be from what the interval asks for.
const offPace = 0.05

// pace is the line on how many renewals there were. Without it a member that renews too often looks as cheap as another: each of its
// requests makes the version that the others are counted by.
func pace(mine, theirs, elect []steady) line {
	of := each(mine, steady.pace)
	return line{
		name: "I1.renewals", ours: of.String(), peer: each(theirs, steady.pace).String(), bar: fmt.Sprintf("%.2f..%.2f", 1-offPace, 1+offPace),
		good: len(of) > 0 && of.least() >= 1-offPace && of.most() <= 1+offPace,
		more: fmt.Sprintf("renewals that the watch saw, to those that %d members owe at %v and their mean jitter, %.0f; leaderelection, without jitter, %s",
			steadyMembers, steadyRenew, each(mine, steady.owed).median(), each(elect, steady.pace)),
	}
}

// owed is how many renewals there should have been.
func (s steady) owed() float64 { return steadyMembers * s.seconds / steadyRenew.Seconds() / meanJitter }

func (s steady) pace() float64 { return s.renewals / s.owed() }

// octets is I2.
func octets(ctx context.Context, b *bench) error {
	all, err := b.steady(ctx)
	if err != nil {
		return err
	}
	both := func(s steady) float64 { return s.up + s.down }
	allocs := func(s steady) float64 { return s.allocs }
	detail := func(s []steady) string {
		get := func(f func(steady) float64) float64 { return each(s, f).median() }
		return fmt.Sprintf("%.0f up, %.0f down, Lease of %.0f", get(func(s steady) float64 { return s.up }),
			get(func(s steady) float64 { return s.down }), get(func(s steady) float64 { return s.size }))
	}
	for _, name := range []string{"ours", "ours-omit"} {
		for _, peer := range []string{"component-helpers", "leaderelection"} {
			mine, theirs := all[name], all[peer]
			b.print(line{
				name: "I2.bytes-" + name + "-" + peer, ours: each(mine, both).String(), peer: each(theirs, both).String(),
				ratio: over(each(mine, both).median(), each(theirs, both).median()),
				more:  fmt.Sprintf("TLS bytes for a renewal; ours %s; peer %s", detail(mine), detail(theirs)),
			})
		}
	}
	for _, peer := range []string{"component-helpers", "leaderelection"} {
		mine, theirs := all["ours"], all[peer]
		allocated := func(s steady) float64 { return s.allocated / 1024 }
		b.print(line{
			name: "I2.allocs-" + peer, ours: each(mine, allocs).String(), peer: each(theirs, allocs).String(),
			ratio: over(each(mine, allocs).median(), each(theirs, allocs).median()),
			more: fmt.Sprintf("allocations for a renewal, the HTTP client included, at %v; ours %s KiB, without managed fields %s; peer %s KiB",
				steadyRenew, each(mine, allocated), each(all["ours-omit"], allocs), each(theirs, allocated)),
		})
	}
	return nil
}
