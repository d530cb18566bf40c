// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"
	"testing"
)

// A detectExact is what theory says of a detector on a fleet: the probability that it halts the rollout, and the mean number of failures by then or
// by the end.
type detectExact struct{ halts, failed float64 }

// detectCountExact is that of a detector that halts at failure k: the number of failures among n nodes is binomial.
func detectCountExact(n, k int, p float64) detectExact {
	e := detectExact{halts: 1}
	for f := range min(k, n+1) {
		q := detectBinomial(n, f, p)
		e.halts -= q
		e.failed += q * float64(f)
	}
	e.failed += e.halts * float64(k)
	return e
}

func detectBinomial(n, f int, p float64) float64 {
	if p == 1 {
		if f == n {
			return 1
		}
		return 0
	}
	return math.Exp(logChoose(n, f) + float64(f)*math.Log(p) + float64(n-f)*math.Log1p(-p))
}

// detectLost is how much probability may get lost in detectCUSUMExact, by runs of more failures than it follows.
const (
	detectMostFailures = 100
	detectLost         = 1e-9
)

// detectCUSUMExact follows the distribution of a cumulative sum node by node, for fleets of several sizes. The sum is known from the failures and
// successes since it was zero last. As each node fails with the same probability whatever was before, the mean number of failures is that
// probability times the mean number of attempts (Wald's identity).
func detectCUSUMExact(t *testing.T, c CUSUM, p float64, sizes ...int) map[int]detectExact {
	t.Helper()
	failure, success, limit := c.weights()
	width := int(detectMostFailures*failure/success) + 2
	now, next := detectGrid(width), detectGrid(width)
	zero, running, attempts := 1.0, 1.0, 0.0
	exact := map[int]detectExact{}
	for n := 1; len(exact) < len(sizes); n++ {
		attempts += running
		zeroNext, halted := zero*(1-p), 0.0
		move := func(q float64, f, s int) {
			switch sum := float64(f)*failure - float64(s)*success; {
			case sum >= limit || f >= detectMostFailures:
				halted += q
			case sum <= 0:
				zeroNext += q
			default:
				next[f][s] += q
			}
		}
		move(zero*p, 1, 0)
		for f := 1; f < detectMostFailures; f++ {
			// Where the sum lies between zero and the limit.
			from := max(0, int((float64(f)*failure-limit)/success))
			for s := from; s <= min(width-1, int(float64(f)*failure/success)); s++ {
				if q := now[f][s]; q > 0 {
					now[f][s] = 0
					move(q*p, f+1, s)
					move(q*(1-p), f, s+1)
				}
			}
		}
		now, next, zero = next, now, zeroNext
		running -= halted
		for _, size := range sizes {
			if size == n {
				exact[n] = detectExact{1 - running, p * attempts}
			}
		}
	}
	return exact
}

func detectGrid(width int) [][]float64 {
	grid := make([][]float64, detectMostFailures+1)
	for i := range grid {
		grid[i] = make([]float64, width)
	}
	return grid
}

// The exact figures agree with what can be told by hand.
func TestExactFigures(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	two := detectCountExact(3, 2, 0.5) // 8 runs: 4 with at least 2 failures, 3 with one
	near("halts at 2 of 3", two.halts, 0.5)
	near("failed at 2 of 3", two.failed, 1.0/8*3+0.5*2)
	near("never halts", detectCountExact(3, 4, 0.5).halts, 0)
	near("fails always", detectCountExact(3, 2, 1).failed, 2)
	c := CUSUM{Limit: 4.6} // two failures in a row, or with successes between that don't outweigh: none here, as 4.6 is as good as two
	three := detectCUSUMExact(t, c, 0.5, 2, 3)
	near("halts at FF", three[2].halts, 0.25)
	near("failed of 2", three[2].failed, 1)
	near("halts at FF of 3", three[3].halts, 3.0/8)   // FF?, SFF
	near("failed of 3", three[3].failed, 0.5*(3-.25)) // one attempt less in a quarter of the runs
	fatal := detectCUSUMExact(t, CUSUM{}, 1, 3, 4, 100)
	near("halts fatal of 3", fatal[3].halts, 0)
	near("halts fatal of 4", fatal[4].halts, 1)
	near("failed fatal of 100", fatal[100].failed, 4)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
