// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
)

// CUSUM is a [Detector] that tells a revision that fails as often as nodes always do from one that fails more often, as soon as that can be told: a
// cumulative sum test on the outcomes in their order. Each failure adds to a sum, each success takes from it, as much as it speaks for the one
// rate or the other; the sum does not fall below zero, so that a good beginning buys nothing for later. The size of the fleet does not matter.
//
// The zero CUSUM has the defaults. A larger Limit stops fewer good revisions and lets a bad one break more nodes: with the default rates
// 4.6, 6.9 and 9.2 stop a fatal one at the second, third and fourth failure in a row.
type CUSUM struct {
	// Good and Bad are the shares of nodes that fail with a good and with a bad revision, above 0 and up to 1. Zero means 0.01 and 0.10.
	Good, Bad float64
	// Limit is the sum at which it trips: the logarithm of how much more likely the outcomes are with a bad revision. Zero means 9.2.
	Limit float64
}

// The defaults of CUSUM.
const (
	cusumGood  = 0.01
	cusumBad   = 0.10
	cusumLimit = 9.2
)

// Validate says what is wrong with the settings. With settings that are wrong the first failure trips the detector.
func (c CUSUM) Validate() error {
	d := c.withDefaults()
	switch {
	case !(d.Good > 0 && d.Good < d.Bad && d.Bad <= 1):
		return fmt.Errorf("detector CUSUM: good, bad: %v against %v, want 0 < good < bad <= 1", d.Good, d.Bad)
	case !(d.Limit > 0) || math.IsInf(d.Limit, 1):
		return fmt.Errorf("detector CUSUM: limit: %v, want a number above 0", d.Limit)
	}
	return nil
}

// Name implements [Detector].
func (c CUSUM) Name() string {
	d := c.withDefaults()
	return fmt.Sprintf("CUSUM of %s against %s failures, limit %v", cusumPercent(d.Good), cusumPercent(d.Bad), d.Limit)
}

// Trips implements [Detector].
func (c CUSUM) Trips(outcomes []Outcome, nodes int) (reason string, tripped bool) {
	t, tripped := c.first(outcomes, nodes)
	if !tripped {
		return "", false
	}
	if err := c.Validate(); err != nil {
		return fmt.Sprintf("node %q failed, and %v", t.last, err), true
	}
	d := c.withDefaults()
	return fmt.Sprintf("%d of the last %d attempted nodes failed, as with a revision that fails on %s of them and not on %s; the last was %q",
		t.failed, t.attempted, cusumPercent(d.Bad), cusumPercent(d.Good), t.last), true
}

// first finds the outcome that trips it. The tally counts from where the sum was zero last.
func (c CUSUM) first(outcomes []Outcome, _ int) (detectTally, bool) {
	failure, success, limit := c.weights()
	var t detectTally
	for _, o := range outcomes {
		if _, attempted := t.add(o); !attempted {
			continue
		}
		// Products, not a running sum: what adds up must not depend on how often it was added.
		sum := float64(t.failed) * failure
		if succeeded := t.attempted - t.failed; succeeded > 0 {
			sum -= float64(succeeded) * success
		}
		if t.failed > 0 && sum >= limit {
			return t, true
		}
		if sum <= 0 {
			t = detectTally{seen: t.seen}
		}
	}
	return t, false
}

// StopsAt implements [Bounded]. Successes before the first failure don't matter: the sum is zero after them.
func (c CUSUM) StopsAt(_, _ int) int {
	failure, _, limit := c.weights()
	if limit/failure > math.MaxInt32 {
		return 0
	}
	n := max(1, math.Ceil(limit/failure))
	for n > 1 && (n-1)*failure >= limit {
		n--
	}
	for n*failure < limit {
		n++
	}
	return int(n)
}

// weights are what a failure adds to the sum, what a success takes from it, and at which sum it trips.
func (c CUSUM) weights() (failure, success, limit float64) {
	if c.Validate() != nil {
		return 1, 0, 1
	}
	d := c.withDefaults()
	return math.Log(d.Bad / d.Good), math.Log((1 - d.Good) / (1 - d.Bad)), d.Limit
}

func (c CUSUM) withDefaults() CUSUM {
	if c.Good == 0 {
		c.Good = cusumGood
	}
	if c.Bad == 0 {
		c.Bad = cusumBad
	}
	if c.Limit == 0 {
		c.Limit = cusumLimit
	}
	return c
}

func cusumPercent(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }
