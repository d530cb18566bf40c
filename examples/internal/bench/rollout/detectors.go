// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/rollout"
)

// A halt is how the rollouts of one cell have gone.
type halt struct {
	halted int
	failed int // nodes, in all rollouts
}

// detectors is R7. The rows are those by which the default detector was chosen: a good revision fails on 1 of 100 nodes, bad ones on 10, 30 and all.
// The peer is what other orchestrators do: to stop after 5% of the nodes.
func (b *bench) detectors(ctx context.Context) error {
	const runs = 15_000 // so that a share of 0.016 is known to about 0.001
	ours, peer := rollout.CUSUM{}, rollout.Failures{At: intstr.FromString("5%"), Of: rollout.OfNodes}
	for _, nodes := range []int{100, 1000, 5000} {
		for _, rate := range []float64{0.01, 0.10, 0.30, 1} {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			random := rand.New(rand.NewPCG(uint64(nodes), uint64(1000*rate))) //nolint:gosec // the same rollouts each time
			cells := simulate([]rollout.Detector{ours, peer}, nodes, runs, rate, random)
			b.Print(detected(cells, nodes, runs, rate))
		}
	}
	return nil
}

// detected is the line of one cell: of a good revision how often it is halted, of a bad one how many nodes fail first.
func detected(cells []halt, nodes, runs int, rate float64) runner.Line {
	share := func(c halt) float64 { return float64(c.halted) / float64(runs) }
	failed := func(c halt) float64 { return float64(c.failed) / float64(runs) }
	ours, peer := cells[0], cells[1]
	l := runner.Line{
		Name: fmt.Sprintf("R7.%d@%g%%", nodes, 100*rate),
		More: fmt.Sprintf("%d rollouts of %d nodes; halted %s, by 5%% of the nodes %s; failed nodes in each %s, by 5%% of the nodes %s",
			runs, nodes, runner.Show(share(ours)), runner.Show(share(peer)), runner.Show(failed(ours)), runner.Show(failed(peer))),
	}
	if rate == 0.01 {
		l.Ours, l.Peer, l.Bar, l.Good = runner.Show(share(ours)), runner.Show(share(peer)), "0.02", share(ours) <= 0.02
		return l
	}
	// What a bad revision may cost at most: the mean of the figures by which the detector was chosen, and a tenth for the sample.
	bars := map[float64]float64{0.10: 6.3, 0.30: 5, 1: 4}
	bar := 1.1 * bars[rate]
	l.Ours, l.Peer, l.Bar, l.Good = runner.Show(failed(ours)), runner.Show(failed(peer)), runner.Show(bar), failed(ours) <= bar
	l.Ratio = runner.Over(failed(ours), failed(peer))
	return l
}

// simulate has every detector look at the same rollouts, node by node.
func simulate(detectors []rollout.Detector, nodes, runs int, rate float64, random *rand.Rand) []halt {
	cells := make([]halt, len(detectors))
	outcomes := make([]rollout.Outcome, nodes)
	for range runs {
		for i := range outcomes {
			outcomes[i] = rollout.Outcome{Node: "n", Result: rollout.Succeeded}
			if random.Float64() < rate {
				outcomes[i].Result = rollout.FailedClean
			}
		}
		for k, d := range detectors {
			seen, tripped := trips(d, outcomes)
			if tripped {
				cells[k].halted++
			}
			for _, o := range outcomes[:seen] {
				if o.Result == rollout.FailedClean {
					cells[k].failed++
				}
			}
		}
	}
	return cells
}

// trips is after how many outcomes a detector halts a rollout. It does so only at a failure, and what has tripped stays tripped, so that the failures
// are searched by halves.
func trips(d rollout.Detector, outcomes []rollout.Outcome) (seen int, tripped bool) {
	var failures []int
	for i := range outcomes {
		if outcomes[i].Result == rollout.FailedClean {
			failures = append(failures, i+1)
		}
	}
	low, high := 0, len(failures)
	for low < high {
		middle := (low + high) / 2
		if _, stop := d.Trips(outcomes[:failures[middle]], len(outcomes)); stop {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == len(failures) {
		return len(outcomes), false
	}
	return failures[low], true
}
