// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
)

// The tail is exact: every table of up to 14 nodes, against the ratio of whole numbers.
func TestFisherTailIsExact(t *testing.T) {
	choose := func(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }
	for nodes := range 15 {
		for with := range nodes + 1 {
			for failed := range nodes + 1 {
				for failedWith := range min(with, failed) + 1 {
					sum := new(big.Int)
					for x := failedWith; x <= min(with, failed); x++ {
						if failed-x <= nodes-with {
							sum.Add(sum, new(big.Int).Mul(choose(with, x), choose(nodes-with, failed-x)))
						}
					}
					want, _ := new(big.Rat).SetFrac(sum, choose(nodes, failed)).Float64()
					if got := causeTail(nodes, with, failed, failedWith); math.Abs(got-want) > 1e-12 {
						t.Fatalf("%d of %d failed nodes among %d of %d: %v, want %v", failedWith, failed, with, nodes, got, want)
					}
				}
			}
		}
	}
	// 8 cups of tea, 4 of a kind, all 4 told: 1 of 70.
	if got := causeTail(8, 4, 4, 4); math.Abs(got-1.0/70) > 1e-15 {
		t.Errorf("four of four: %v, want 1/70", got)
	}
	// Half of 5000 nodes failed, half of them have it: none of them, one and all are so far out that their probability is not a number.
	for failedWith, want := range map[int]float64{0: 1, 1: 1, 1200: 1, 2500: 0} {
		if got := causeTail(5000, 2500, 2500, failedWith); math.Abs(got-want) > 0.01 {
			t.Errorf("5000 nodes, at least %d: %v, want %v", failedWith, got, want)
		}
	}
}

// causeFleet makes up nodes with attributes as clusters have them.
func causeFleet(random *rand.Rand, nodes int) []map[string]string {
	fleet := make([]map[string]string, nodes)
	for i := range fleet {
		fleet[i] = map[string]string{
			"zone":     fmt.Sprintf("zone-%d", i%3),
			"kernel":   []string{"5.10", "6.1", "6.6"}[min(2, random.IntN(8))],
			"instance": fmt.Sprintf("type-%d", random.IntN(6)),
			"host":     fmt.Sprintf("node-%d", i),
			"os":       "linux",
		}
		if random.IntN(4) == 0 {
			fleet[i]["gpu"] = "yes"
		}
	}
	return fleet
}

// causeSplit has nodes fail with a probability that depends on them.
func causeSplit(random *rand.Rand, fleet []map[string]string, rate func(map[string]string) float64) (failed, succeeded []map[string]string) {
	for _, node := range fleet {
		if random.Float64() < rate(node) {
			failed = append(failed, node)
		} else {
			succeeded = append(succeeded, node)
		}
	}
	return failed, succeeded
}

// causeTrials is how many fleets are simulated; the tolerance is 4.5 standard errors of a share of them, as in the table of detectors.
const causeTrials = 3000

// R-RO-28: failures that have nothing to do with any attribute are blamed on one in no more than one rollout of 100, whatever the
// size of the fleet and the share that failed.
func TestNothingIsBlamedByChance_R_RO_28(t *testing.T) {
	trials := raceshare.Of(t, causeTrials)
	limit := causeChance + detectSigmas*math.Sqrt(causeChance*(1-causeChance)/float64(trials))
	for _, c := range []struct {
		nodes int
		rate  float64
	}{{12, 0.3}, {60, 0.1}, {60, 0.5}, {300, 0.02}, {300, 0.5}} {
		random := rand.New(rand.NewPCG(28, 7))
		blamed := 0
		for range trials {
			failed, succeeded := causeSplit(random, causeFleet(random, c.nodes), func(map[string]string) float64 { return c.rate })
			if len(Causes(failed, succeeded)) > 0 {
				blamed++
			}
		}
		share := float64(blamed) / float64(trials)
		t.Logf("%d nodes, %v failed: blamed in %.4f of the rollouts", c.nodes, c.rate, share)
		if share > limit {
			t.Errorf("%d nodes, %v failed: something is blamed in %.4f of the rollouts, want %v at most (%.4f with the error)", c.nodes, c.rate, share, causeChance, limit)
		}
	}
}

// R-RO-28: what makes nodes fail is named, though many attributes were looked at, and one of them differs on every node.
func TestCauseIsFound_R_RO_28(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int
		rate  func(map[string]string) float64
		want  string
		least float64
	}{
		"a kernel on which most fail": {60, func(n map[string]string) float64 {
			return map[bool]float64{true: 0.9, false: 0.01}[n["kernel"] == "6.1"]
		}, `kernel "6.1"`, 0.9},
		"a zone on which half fail": {60, func(n map[string]string) float64 {
			return map[bool]float64{true: 0.5, false: 0.02}[n["zone"] == "zone-1"]
		}, `zone "zone-1"`, 0.8},
		"nodes without a label": {120, func(n map[string]string) float64 { return map[bool]float64{true: 0, false: 0.3}[n["gpu"] == "yes"] }, "no gpu", 0.5},
	} {
		random := rand.New(rand.NewPCG(28, 8))
		found, trials := 0, raceshare.Of(t, 500)
		for range trials {
			if causes := Causes(causeSplit(random, causeFleet(random, c.nodes), c.rate)); len(causes) > 0 && strings.Contains(causes[0].String(), c.want) {
				found++
			}
		}
		share := float64(found) / float64(trials)
		t.Logf("%s: found in %.3f", name, share)
		if share < c.least {
			t.Errorf("%s: named in %.3f of the rollouts, want %v at least", name, share, c.least)
		}
	}
}

// R-RO-28: what a freeze says.
func TestCauseText_R_RO_28(t *testing.T) {
	node := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for _, p := range pairs {
			k, v, _ := strings.Cut(p, "=")
			m[k] = v
		}
		return m
	}
	repeat := func(n int, node map[string]string) (nodes []map[string]string) {
		for range n {
			nodes = append(nodes, node)
		}
		return nodes
	}
	for _, c := range []struct {
		name              string
		failed, succeeded []map[string]string
		want              string
	}{
		{"one", repeat(4, node("kernel=6.1", "zone=a")), append(repeat(19, node("kernel=5.10", "zone=a")), node("kernel=6.1", "zone=a")),
			`4 of 4 failed nodes have kernel "6.1", and 1 of 20 that succeeded`},
		{"two that come together, by name", repeat(4, node("zone=a", "kernel=6.1")), repeat(20, node("zone=b", "kernel=5.10")),
			`4 of 4 failed nodes have kernel "6.1", and 0 of 20 that succeeded; 4 of 4 failed nodes have zone "a", and 0 of 20 that succeeded`},
		{"no more than three", repeat(4, node("a=1", "b=1", "c=1", "d=1")), repeat(40, node()),
			`4 of 4 failed nodes have a "1", and 0 of 40 that succeeded; 4 of 4 failed nodes have b "1", and 0 of 40 that succeeded; 4 of 4 failed nodes have c "1", and 0 of 40 that succeeded`},
		{"the clearest first", append(repeat(9, node("a=1", "z=1")), node("a=2", "z=1")), append(repeat(19, node("a=2", "z=2")), node("a=1", "z=2")),
			`10 of 10 failed nodes have z "1", and 0 of 20 that succeeded; 9 of 10 failed nodes have a "1", and 1 of 20 that succeeded`},
		{"an empty value is one", repeat(4, node("role=")), repeat(20, node()), `4 of 4 failed nodes have role "", and 0 of 20 that succeeded`},
		{"none is one", repeat(4, node()), repeat(20, node("role=")), `4 of 4 failed nodes have no role, and 0 of 20 that succeeded`},
		{"too few", repeat(2, node("zone=a")), repeat(2, node("zone=b")), ""},
		{"those that succeed have it", repeat(4, node("zone=a")), append(repeat(10, node("zone=a")), repeat(10, node("zone=b"))...), ""},
		{"all failed", repeat(9, node("zone=a")), nil, ""},
		{"none failed", nil, repeat(9, node("zone=a")), ""},
		{"nothing", nil, nil, ""},
	} {
		if got := causesText(Causes(c.failed, c.succeeded)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
