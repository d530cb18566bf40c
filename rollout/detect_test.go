// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/raceshare"
)

var (
	_ Bounded  = Failures{}
	_ Bounded  = CUSUM{}
	_ Detector = Critical{}
)

// detectOutcomes makes outcomes from letters: S succeeded, F fell back, B broken, U suspect, L lost, r refused, d deferred, u undone.
func detectOutcomes(letters string) []Outcome {
	results := map[rune]Result{
		'S': Succeeded, 'F': FailedClean, 'B': FailedBroken, 'U': Suspected, 'L': Lost, 'r': Refused, 'd': Deferred, 'u': Undone, '?': "SomethingNew", '-': "",
	}
	outcomes := make([]Outcome, 0, len(letters))
	for i, letter := range letters {
		outcomes = append(outcomes, Outcome{Node: fmt.Sprintf("n%d", i), UID: fmt.Sprintf("u%d", i), Result: results[letter]})
	}
	return outcomes
}

// detectAt is how many outcomes it takes to trip the detector, 0 if it does not trip.
func detectAt(d Detector, outcomes []Outcome, nodes int) int {
	for i := range len(outcomes) + 1 {
		if _, tripped := d.Trips(outcomes[:i], nodes); tripped {
			return i
		}
	}
	return 0
}

// detectAny is the first detector of a policy that trips.
func detectAny(detectors []Detector, outcomes []Outcome, nodes int) (name, reason string, tripped bool) {
	for _, d := range detectWith(detectors) {
		if reason, tripped := d.Trips(outcomes, nodes); tripped {
			return d.Name(), reason, true
		}
	}
	return "", "", false
}

func detectPercent(percent string, of Denominator, after int) Failures {
	return Failures{At: intstr.FromString(percent), Of: of, After: after}
}

// R-RO-17: a percentage is of what its setting names, is rounded up, and is at least one node.
func TestFailureThresholdIsExact_R_RO_17(t *testing.T) {
	for _, c := range []struct {
		detector Failures
		nodes    int
		want     int
	}{
		{Failures{}, 100, 1},
		{Failures{At: intstr.FromInt32(1)}, 100, 1},
		{Failures{At: intstr.FromInt32(2)}, 100, 2},
		{Failures{At: intstr.FromInt32(2)}, 1, 2},
		{detectPercent("0%", OfNodes, 0), 100, 1},
		{detectPercent("1%", OfNodes, 0), 0, 1},
		{detectPercent("10%", OfNodes, 0), 1, 1},
		{detectPercent("10%", OfNodes, 0), 9, 1},
		{detectPercent("10%", OfNodes, 0), 10, 1},
		{detectPercent("10%", OfNodes, 0), 11, 2},
		{detectPercent("10%", OfNodes, 0), 20, 2},
		{detectPercent("10%", OfNodes, 0), 21, 3},
		{detectPercent("5%", OfNodes, 0), 100, 5},
		{detectPercent("5%", OfNodes, 0), 101, 6},
		{detectPercent("100%", OfNodes, 0), 7, 7},
	} {
		outcomes := detectOutcomes(strings.Repeat("SF", 200))
		if got := detectAt(c.detector, outcomes, c.nodes) / 2; got != c.want {
			t.Errorf("%s of %d nodes trips at failure %d, want %d", c.detector.Name(), c.nodes, got, c.want)
		}
	}
}

// R-RO-17: of the attempted nodes only those count that have failed or succeeded.
func TestFailuresOfAttemptedNodes_R_RO_17(t *testing.T) {
	for _, c := range []struct {
		percent  string
		after    int
		nodes    int
		outcomes string
		want     int
	}{
		{"50%", 0, 100, "F", 1},
		{"50%", 0, 100, "SF", 2},
		{"50%", 0, 100, "SSFF", 4},
		{"50%", 0, 100, "SSF", 0},
		{"34%", 0, 100, "SSF", 0},
		{"33%", 0, 100, "SSF", 3},
		{"50%", 3, 100, "FSS", 0},
		{"50%", 3, 100, "FFS", 3},
		{"50%", 3, 2, "FF", 2},
		{"50%", 3, 100, "FrdFuS", 6},
		{"50%", 3, 100, "Frdurdu", 0},
		{"50%", 0, 100, "SrrrF", 5},
		{"100%", 0, 100, "FF", 1},
		{"100%", 2, 100, "FF", 2},
		{"100%", 0, 100, "SFFFFFFFF", 0},
		{"0%", 0, 100, strings.Repeat("S", 99) + "F", 100},
		{"0%", 0, 100, strings.Repeat("S", 100) + "F", 0},
		{"0%", 0, 100, "SS", 0},
	} {
		d := detectPercent(c.percent, OfAttempted, c.after)
		if got := detectAt(d, detectOutcomes(c.outcomes), c.nodes); got != c.want {
			t.Errorf("%s of %d on %s trips at outcome %d, want %d", d.Name(), c.nodes, c.outcomes, got, c.want)
		}
	}
}

// R-RO-28: what a detector counts as a failure, and what as nothing.
func TestResultsThatCount_R_RO_28(t *testing.T) {
	for letters, want := range map[string]int{
		"SSSS": 0, "rrrr": 0, "dddd": 0, "uuuu": 0, "----": 0, "F": 1, "B": 1, "U": 1, "L": 1, "?": 1, "SrduF": 5,
	} {
		for _, d := range []Detector{Failures{}, CUSUM{Limit: 2}, Critical{Nodes: []string{"n0", "n1", "n2", "n3", "n4"}}} {
			if got := detectAt(d, detectOutcomes(letters), 100); got != want {
				t.Errorf("%s on %s trips at outcome %d, want %d", d.Name(), letters, got, want)
			}
		}
	}
}

// R-RO-28: a cumulative sum remembers failures, forgets them after enough successes, and has nothing saved from a good beginning.
func TestCUSUMWeighsOutcomes_R_RO_28(t *testing.T) {
	s := strings.Repeat
	for _, c := range []struct {
		name     string
		detector CUSUM
		outcomes string
		want     int
	}{
		{"fatal", CUSUM{}, "FFFF", 4},
		{"three are chance", CUSUM{}, "FFF", 0},
		{"limit 6.9", CUSUM{Limit: 6.9}, "FFF", 3},
		{"limit 4.6", CUSUM{Limit: 4.6}, "FF", 2},
		{"a success between", CUSUM{}, "FFSFF", 0},
		{"a success between, and one more", CUSUM{}, "FFSFFF", 6},
		{"a good beginning", CUSUM{}, s("S", 1000) + "FFFF", 1004},
		{"refusals between", CUSUM{}, "FrrFddFuuF", 10},
		// A failure weighs as much as 24.2 successes.
		{"24 successes leave a trace of a failure", CUSUM{Limit: 9.22}, "F" + s("S", 24) + "FFFF", 29},
		{"25 successes outweigh a failure", CUSUM{Limit: 9.22}, "F" + s("S", 25) + "FFFF", 0},
		{"one in 20", CUSUM{}, s(s("S", 19)+"F", 20), 320},
		{"one in 30", CUSUM{}, s(s("S", 29)+"F", 100), 0},
		{"a success ends it if nothing can succeed", CUSUM{Bad: 1}, "FSFSFS", 0},
		{"two of a revision on which all fail", CUSUM{Bad: 1}, "FF", 2},
	} {
		if got := detectAt(c.detector, detectOutcomes(c.outcomes), 1000); got != c.want {
			t.Errorf("%s: %s trips at outcome %d, want %d", c.name, c.detector.Name(), got, c.want)
		}
	}
}

// R-RO-18: one failure of a critical node is enough, however it failed; failures of others are not.
func TestCriticalNodeStops_R_RO_18(t *testing.T) {
	d := Critical{Nodes: []string{"n2", "n4"}}
	for letters, want := range map[string]int{"SSF": 3, "SSL": 3, "SSU": 3, "SSB": 3, "FFSFS": 0, "FFrFd": 0, "FFuFF": 5} {
		if got := detectAt(d, detectOutcomes(letters), 100); got != want {
			t.Errorf("%s: trips at outcome %d, want %d", letters, got, want)
		}
	}
	if reason, _ := d.Trips(detectOutcomes("SSL"), 3); reason != `critical node "n2": Lost` {
		t.Errorf("reason %q", reason)
	}
	if _, tripped := (Critical{}).Trips(detectOutcomes("FFFF"), 4); tripped {
		t.Error("without critical nodes one failed")
	}
}

// R-RO-28: no detectors is a setting of its own; saying nothing is not.
func TestOffIsExplicit_R_RO_28(t *testing.T) {
	fatal := detectOutcomes("FFFFFFFF")
	if name, reason, tripped := detectAny([]Detector{}, fatal, 8); tripped {
		t.Errorf("%s tripped though there is none: %s", name, reason)
	}
	name, reason, tripped := detectAny(nil, fatal, 8)
	if !tripped || name != (CUSUM{}).Name() || !strings.Contains(reason, `4 of the last 4 attempted nodes failed`) {
		t.Errorf("the default: %t, %q, %q", tripped, name, reason)
	}
	if name, _, _ := detectAny([]Detector{Critical{}, Failures{At: intstr.FromInt32(8)}, Failures{}}, fatal, 8); name != "failures of 8 nodes" {
		t.Errorf("%q, want the first of the list that trips", name)
	}
}

// Settings that make no sense are told, and stop rather than let everything pass. R-RO-28
func TestSettingsThatMakeNoSense_R_RO_28(t *testing.T) {
	for _, c := range []struct {
		detector interface {
			Bounded
			Validate() error
		}
		want string
	}{
		{Failures{At: intstr.FromInt32(-1)}, "at: -1 is out of range"},
		{Failures{At: intstr.FromInt32(2), Of: OfNodes}, `of: "Nodes", want none`},
		{detectPercent("five", OfNodes, 0), "at: "},
		{detectPercent("101%", OfNodes, 0), "at: 101% is out of range"},
		{detectPercent("-1%", OfNodes, 0), "at: -1% is out of range"},
		{detectPercent("5%", "", 0), `of: "", want "Nodes" or "Attempted" for 5%`},
		{detectPercent("5%", "Group", 0), `of: "Group"`},
		{detectPercent("5%", OfNodes, 3), "after: 3"},
		{detectPercent("5%", OfAttempted, -1), "after: -1"},
		{CUSUM{Good: 0.2}, "0.2 against 0.1"},
		{CUSUM{Good: -1}, "-1 against 0.1"},
		{CUSUM{Bad: 1.5}, "0.01 against 1.5"},
		{CUSUM{Good: math.NaN()}, "NaN against 0.1"},
		{CUSUM{Bad: math.NaN()}, "0.01 against NaN"},
		{CUSUM{Limit: -1}, "limit: -1"},
		{CUSUM{Limit: math.NaN()}, "limit: NaN"},
		{CUSUM{Limit: math.Inf(1)}, "limit: +Inf"},
	} {
		if err := c.detector.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.detector, err, c.want)
		}
		if reason, tripped := c.detector.Trips(detectOutcomes("SSF"), 100); !tripped || !strings.Contains(reason, c.want) {
			t.Errorf("%+v: %t %q, want the first failure to trip it, and why", c.detector, tripped, reason)
		}
		if _, tripped := c.detector.Trips(detectOutcomes("SSS"), 100); tripped || c.detector.StopsAt(7, 100) != 1 {
			t.Errorf("%+v: tripped without a failure, or needs more than one", c.detector)
		}
	}
	for _, d := range detectSome() {
		if v, ok := d.(interface{ Validate() error }); ok && v.Validate() != nil {
			t.Errorf("%s: %v", d.Name(), v.Validate())
		}
	}
}

// detectSome are detectors of every kind.
func detectSome() []Detector {
	return []Detector{
		Failures{}, Failures{At: intstr.FromInt32(3)}, detectPercent("7%", OfNodes, 0), detectPercent("20%", OfAttempted, 0),
		detectPercent("20%", OfAttempted, 10), detectPercent("1%", OfAttempted, 30), detectPercent("100%", OfAttempted, 4), detectPercent("0%", OfAttempted, 2),
		CUSUM{}, CUSUM{Limit: 4.6}, CUSUM{Limit: 6.9}, CUSUM{Good: 0.05, Bad: 0.5, Limit: 5}, CUSUM{Bad: 1}, CUSUM{Good: 0.3, Bad: 0.31},
		Critical{Nodes: []string{"n3", "n9"}},
	}
}

// R-RO-28: what tripped once stays tripped, for the same reason, in however many passes the outcomes came; what is neither a failure nor a success
// changes nothing.
func TestDetectorsDoNotDependOnPasses_R_RO_28(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 1))
	for range raceshare.Of(t, 2000) {
		letters := make([]byte, random.IntN(60))
		rate := random.Float64()
		for i := range letters {
			letters[i] = 'S'
			if random.Float64() < rate {
				letters[i] = "FBUL"[random.IntN(4)]
			}
		}
		outcomes := detectOutcomes(string(letters))
		padded := slices.Clone(outcomes)
		for range random.IntN(10) {
			padded = slices.Insert(padded, random.IntN(len(padded)+1), Outcome{Node: "n3", Result: []Result{Refused, Deferred, Undone, ""}[random.IntN(4)]})
		}
		for _, d := range detectSome() {
			at := detectAt(d, outcomes, 40)
			reason, tripped := d.Trips(outcomes, 40)
			if tripped != (at > 0) || tripped != (reason != "") {
				t.Fatalf("%s on %s: %t %q at the end, and at outcome %d before", d.Name(), letters, tripped, reason, at)
			}
			if early, _ := d.Trips(outcomes[:at], 40); early != reason {
				t.Fatalf("%s on %s: reason %q at first, %q later", d.Name(), letters, early, reason)
			}
			if other, _ := d.Trips(padded, 40); other != reason {
				t.Fatalf("%s on %s: reason %q, and %q with refusals between", d.Name(), letters, reason, other)
			}
		}
	}
}

// R-RO-28: the number of failures that a detector says it needs is the one at which it trips.
func TestStopsAtIsTrue_R_RO_28(t *testing.T) {
	for _, d := range detectSome() {
		b, ok := d.(Bounded)
		if !ok {
			continue
		}
		for _, nodes := range []int{1, 5, 40, 100} {
			for succeeded := 0; succeeded < nodes; succeeded += raceshare.Step(t) {
				letters := strings.Repeat("S", succeeded) + strings.Repeat("F", 400)
				want := max(0, detectAt(d, detectOutcomes(letters), nodes)-succeeded)
				if got := b.StopsAt(succeeded, nodes); got != want {
					t.Fatalf("%s of %d nodes after %d successes: StopsAt is %d, trips at failure %d", d.Name(), nodes, succeeded, got, want)
				}
			}
		}
	}
	// Limits that some number of failures reaches just so, just not, or just more than.
	for n := 0; n < 2000; n += raceshare.Step(t) {
		c := CUSUM{Good: 0.01, Bad: 0.01 * (1 + float64(n+1)/1000)}
		failure, _, _ := c.weights()
		exact := float64(1+n%40) * failure
		for _, limit := range []float64{exact, math.Nextafter(exact, 0), math.Nextafter(exact, 1e9)} {
			c.Limit = limit
			if got, want := c.StopsAt(0, 300), detectAt(c, detectOutcomes(strings.Repeat("F", n%40+2)), 300); got != want {
				t.Errorf("%+v: StopsAt is %d, trips at failure %d", c, got, want)
			}
		}
	}
	if got := (CUSUM{Good: 0.1, Bad: math.Nextafter(0.1, 1)}).StopsAt(0, 100); got != 0 {
		t.Errorf("rates that cannot be told apart: StopsAt is %d, want 0 for never", got)
	}
}

// R-RO-17: a detector's name, which stands in the closure of the ledger, says what a percentage is of; so does the reason.
func TestDetectorsSayWhatTheyCount_R_RO_17(t *testing.T) {
	for _, c := range []struct {
		detector     Detector
		name, reason string
	}{
		{Failures{}, "failures of 1 nodes", `1 of 8 nodes failed, the limit is 1 (0); the last was "n1"`},
		{Failures{At: intstr.FromInt32(2)}, "failures of 2 nodes", `2 of 8 nodes failed, the limit is 2 (2); the last was "n2"`},
		{detectPercent("20%", OfNodes, 0), "failures of 20% of the nodes", `2 of 8 nodes failed, the limit is 2 (20%); the last was "n2"`},
		{detectPercent("60%", OfAttempted, 0), "failures of 60% of the attempted nodes", `2 of 3 attempted nodes failed, the limit is 60%; the last was "n2"`},
		{detectPercent("60%", OfAttempted, 4), "failures of 60% of the attempted nodes after 4", `3 of 4 attempted nodes failed, the limit is 60%; the last was "n3"`},
		{detectPercent("5%", "", 0), "failures (invalid)", `node "n1" failed, and detector failures: of: "", want "Nodes" or "Attempted" for 5%`},
		{CUSUM{}, "CUSUM of 1% against 10% failures, limit 9.2", `4 of the last 4 attempted nodes failed, as with a revision that fails on 10% of them and not on 1%; the last was "n4"`},
		{CUSUM{Good: 0.001, Bad: 0.025, Limit: 3}, "CUSUM of 0.1% against 2.5% failures, limit 3", `1 of the last 1 attempted nodes failed, as with a revision that fails on 2.5% of them and not on 0.1%; the last was "n1"`},
		{Critical{Nodes: []string{"n2"}}, "critical node", `critical node "n2": FailedClean`},
	} {
		reason, tripped := c.detector.Trips(detectOutcomes("SFFFFFFF"), 8)
		if c.detector.Name() != c.name || !tripped || reason != c.reason {
			t.Errorf("%q: %t %q, want %q: %q", c.detector.Name(), tripped, reason, c.name, c.reason)
		}
	}
}
