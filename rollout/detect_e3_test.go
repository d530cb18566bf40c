// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/raceshare"
)

// detectRuns is the number of runs of each cell of the table; under the race detector there is a share of them, and the tolerance is wider.
const detectRuns = 1500

// detectSigmas is how many standard errors a figure of the table may lie off. There are 144 figures: at 4.5, which a normal variable passes with a
// probability of 7e-6, a table that is right is off in any of them once in 1,000 seeds. The seeds are fixed, and were not chosen.
const detectSigmas = 4.5

// A detectCell is what the runs of one detector, fleet and failure rate have shown.
type detectCell struct {
	detector string
	nodes    int
	rate     float64
	halts    float64
	failed   float64
	// The standard error of failed.
	failedError float64
	runs        float64
	exact       detectExact
}

// R-RO-28: the table of detectors. Each cell is 1,500 simulated rollouts.
func TestDetectorTable_R_RO_28(t *testing.T) {
	cells := detectTable(t)
	t.Run("exact", func(t *testing.T) { detectCompareExact(t, cells) })
	t.Run("figures", func(t *testing.T) { detectCompareFigures(t, cells) })
}

// detectCompareExact demands that the cells agree with their exact distributions: a binomial one for the counts, one that is followed node by node
// for the sums.
func detectCompareExact(t *testing.T, cells []detectCell) {
	// What a few runs in all do is Poisson rather than normal, and what happens in one run of 10,000 may be missing from the sample and its
	// spread. So the tolerance has, for each sigma, one run more that halts, or that has one failure more.
	for _, c := range cells {
		rare := 1 / c.runs
		t.Logf("%5d nodes, %-48s rate %4.2f: halts %.3f (exact %.4f), failed %.2f (exact %.3f)", c.nodes, c.detector, c.rate, c.halts, c.exact.halts, c.failed, c.exact.failed)
		variance := max(0, c.exact.halts*(1-c.exact.halts))
		if tolerance := detectSigmas * (math.Sqrt(variance/c.runs) + rare); math.Abs(c.halts-c.exact.halts) > tolerance {
			t.Errorf("%s, %d nodes, rate %v: halts %.4f, want %.4f +- %.4f", c.detector, c.nodes, c.rate, c.halts, c.exact.halts, tolerance)
		}
		if tolerance := detectSigmas * (c.failedError + rare); math.Abs(c.failed-c.exact.failed) > tolerance {
			t.Errorf("%s, %d nodes, rate %v: failed %.3f, want %.3f +- %.3f", c.detector, c.nodes, c.rate, c.failed, c.exact.failed, tolerance)
		}
	}
}

// detectCompareFigures demands the figures by which the default detector was chosen. They were themselves taken from 1,500 runs and rounded, so that
// the tolerance has half of the last digit, and the error of two samples.
func detectCompareFigures(t *testing.T, cells []detectCell) {
	share := func(digits float64) func(detectCell) (got, tolerance float64) {
		return func(c detectCell) (got, tolerance float64) {
			return c.halts, digits + detectSigmas*math.Sqrt(max(0, 2*c.exact.halts*(1-c.exact.halts)/c.runs))
		}
	}
	failed := func(digits float64) func(detectCell) (got, tolerance float64) {
		return func(c detectCell) (got, tolerance float64) {
			return c.failed, digits + detectSigmas*math.Sqrt2*c.failedError
		}
	}
	two, five, sum := "failures of 2 nodes", "failures of 5% of the nodes", CUSUM{}.Name()
	quoted := []struct {
		detector string
		nodes    int
		rate     float64
		figure   func(detectCell) (got, tolerance float64)
		want     float64
	}{
		{two, 100, 0.01, share(0.005), 0.27},
		{two, 1000, 0.01, share(0.005), 1.00},
		{five, 1000, 1, failed(0.5), 50},
		{five, 5000, 1, failed(0.5), 250},
		{sum, 1000, 0.01, share(0.005), 0.00},
		{sum, 5000, 0.01, share(0.005), 0.01},
		{sum, 1000, 1, failed(0.05), 4.0},
		{sum, 5000, 1, failed(0.05), 4.0},
		{sum, 1000, 0.30, failed(0.05), 5.0},
		{sum, 5000, 0.30, failed(0.05), 5.0},
		{sum, 1000, 0.10, failed(0.05), 6.3},
		{sum, 5000, 0.10, failed(0.05), 6.3},
	}
	found := 0
	for _, c := range cells {
		for _, q := range quoted {
			if c.detector != q.detector || c.nodes != q.nodes || c.rate != q.rate {
				continue
			}
			found++
			if got, tolerance := q.figure(c); math.Abs(got-q.want) > tolerance {
				t.Errorf("%s, %d nodes, rate %v: %.3f, want %v +- %.3f", c.detector, c.nodes, c.rate, got, q.want, tolerance)
			}
		}
	}
	if found != len(quoted) && raceshare.Step(t) == 1 {
		t.Errorf("%d of %d figures are in the table", found, len(quoted))
	}
}

// A detectFirst is a detector that tells at which outcome it trips.
type detectFirst interface {
	Detector
	first(outcomes []Outcome, nodes int) (detectTally, bool)
}

// detectTable simulates rollouts over fleets. All detectors of a fleet and rate see the same outcomes.
func detectTable(t *testing.T) []detectCell {
	t.Helper()
	sizes, rates, runs := []int{100, 1000, 5000}, []float64{0.01, 0.10, 0.30, 1}, raceshare.Of(t, detectRuns)
	detectors := []detectFirst{
		Failures{At: intstr.FromInt32(2)}, detectPercent("5%", OfNodes, 0), detectPercent("10%", OfNodes, 0),
		CUSUM{Limit: 4.6}, CUSUM{Limit: 6.9}, CUSUM{},
	}
	if raceshare.Step(t) > 1 {
		sizes = sizes[:2] // to follow the sums over 5,000 nodes takes longest
	}
	var cells []detectCell
	for j, rate := range rates {
		for _, d := range detectors {
			exact := detectExactOf(t, d, rate, sizes)
			for _, n := range sizes {
				cells = append(cells, detectCell{detector: d.Name(), nodes: n, rate: rate, runs: float64(runs), exact: exact[n]})
			}
		}
		for i, n := range sizes {
			random := rand.New(rand.NewPCG(28, uint64(10*n+j)))
			sums := detectSimulate(detectors, n, runs, rate, random)
			for k := range detectors {
				cell := &cells[(j*len(detectors)+k)*len(sizes)+i]
				cell.halts, cell.failed, cell.failedError = sums[k].figures(float64(runs))
			}
		}
	}
	return cells
}

func detectExactOf(t *testing.T, d Detector, rate float64, sizes []int) map[int]detectExact {
	t.Helper()
	if c, ok := d.(CUSUM); ok {
		return detectCUSUMExact(t, c, rate, sizes...)
	}
	exact := map[int]detectExact{}
	for _, n := range sizes {
		k := map[string]int{"failures of 2 nodes": 2, "failures of 5% of the nodes": n / 20, "failures of 10% of the nodes": n / 10}[d.Name()]
		if k == 0 {
			t.Fatalf("no exact figures for %s", d.Name())
		}
		exact[n] = detectCountExact(n, k, rate)
	}
	return exact
}

// A detectSum adds up runs.
type detectSum struct{ halted, failed, squares float64 }

func (s detectSum) figures(runs float64) (halts, failed, failedError float64) {
	mean := s.failed / runs
	return s.halted / runs, mean, math.Sqrt(max(0, s.squares/runs-mean*mean) / runs)
}

func detectSimulate(detectors []detectFirst, nodes, runs int, rate float64, random *rand.Rand) []detectSum {
	outcomes := make([]Outcome, nodes)
	for i := range outcomes {
		outcomes[i].Node = fmt.Sprintf("n%d", i)
	}
	sums := make([]detectSum, len(detectors))
	for range runs {
		for i := range outcomes {
			outcomes[i].Result = Succeeded
			if random.Float64() < rate {
				outcomes[i].Result = FailedClean
			}
		}
		for k, d := range detectors {
			tally, tripped := d.first(outcomes, nodes)
			failed := 0.0
			for _, o := range outcomes[:tally.seen] {
				if o.Result == FailedClean {
					failed++
				}
			}
			if tripped {
				sums[k].halted++
			}
			sums[k].failed += failed
			sums[k].squares += failed * failed
		}
	}
	return sums
}
