// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout/protocol"
)

// A boundRun is one rollout of a fatal revision: so many attempts succeed, and from then on every one that is seen fails.
type boundRun struct {
	stages    []StageLoad
	detectors []Detector
	succeed   int

	nodes    int
	outcomes []Outcome
	broken   int
	// after is how many nodes were broken when each stage was over, or the rollout stopped in it.
	after []int
}

func newBoundRun(stages []StageLoad, detectors []Detector, succeed int) *boundRun {
	r := &boundRun{stages: stages, detectors: detectors, succeed: succeed}
	for _, s := range stages {
		r.nodes += s.Nodes
	}
	return r
}

// see notes the end of one attempt.
func (r *boundRun) see(refused bool) {
	result := Succeeded
	switch {
	case refused:
		result = Refused
	case r.succeed > 0:
		r.succeed--
	default:
		result = FailedBroken
		r.broken++
	}
	r.outcomes = append(r.outcomes, Outcome{Node: "n", Result: result})
}

// stopped reports whether nothing more may be begun: a detector has tripped, or a node has failed and none has succeeded.
func (r *boundRun) stopped(outcomes []Outcome) bool {
	_, _, tripped := detectAny(r.detectors, outcomes, r.nodes)
	succeeded := slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Result == Succeeded })
	failed := slices.ContainsFunc(outcomes, func(o Outcome) bool { return detectFailed(o.Result) })
	return tripped || failed && !succeeded
}

// wild plays the run with attempts of any length, refusals, and passes that see any number of ends at once. Slots are free when the end was seen.
func (r *boundRun) wild(random *rand.Rand) {
	refusals, haste := random.Float64()*0.5, random.Float64()
	for _, s := range r.stages {
		left, inFlight := s.Nodes, 0
		for left > 0 || inFlight > 0 {
			for range s.inFlight() - inFlight {
				if left > 0 && (inFlight == 0 || random.Float64() < haste) {
					left, inFlight = left-1, inFlight+1
				}
			}
			for range 1 + random.IntN(inFlight) {
				r.see(random.Float64() < refusals)
				inFlight--
			}
			if r.stopped(r.outcomes) {
				r.broken += inFlight // all of them fail as well
				r.after = append(r.after, r.broken)
				return
			}
		}
		r.after = append(r.after, r.broken)
	}
}

// patient plays the run that breaks as many as it can: after the successes so many nodes refuse, then the nodes fail one at a time until the next failure
// would stop the rollout, and it is seen when all slots are taken.
func (r *boundRun) patient(refuse int) {
	for _, s := range r.stages {
		for left := s.Nodes; left > 0; left-- {
			if r.succeed == 0 && refuse == 0 && r.stopped(append(slices.Clone(r.outcomes), Outcome{Node: "n", Result: FailedBroken})) {
				r.broken += min(left, s.inFlight())
				r.after = append(r.after, r.broken)
				return
			}
			refused := r.succeed == 0 && refuse > 0
			if refused {
				refuse--
			}
			r.see(refused)
		}
		r.after = append(r.after, r.broken)
	}
}

// boundPlan makes up a plan.
func boundPlan(random *rand.Rand, size int) ([]StageLoad, []Detector) {
	stages := make([]StageLoad, 1+random.IntN(4))
	for i := range stages {
		stages[i] = StageLoad{Name: string(rune('a' + i)), Nodes: random.IntN(size), InFlight: random.IntN(size)}
	}
	some := detectSome()
	detectors := []Detector{} // off
	for range random.IntN(4) {
		detectors = append(detectors, some[random.IntN(len(some))])
	}
	return stages, detectors
}

// R-RO-28: no run of a fatal revision breaks more nodes than the bound says, in no stage.
func TestBoundIsNeverExceeded_R_RO_28(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 4))
	for range raceshare.Of(t, 3000) {
		stages, detectors := boundPlan(random, 30)
		bound := Bound(stages, detectors)
		for range 20 {
			succeed := random.IntN(bound.Nodes + 2)
			run := newBoundRun(stages, detectors, succeed)
			run.wild(random)
			for i, broken := range run.after {
				if broken > bound.Stages[i].Broken || broken > bound.Broken {
					t.Fatalf("%+v, %s, %d succeed: %d nodes are broken after stage %q, the bound is %d there and %d in all",
						stages, boundNames(detectors), succeed, broken, stages[i].Name, bound.Stages[i].Broken, bound.Broken)
				}
			}
		}
	}
}

// R-RO-28: some run breaks as many nodes as the bound says, in every stage.
func TestBoundIsReached_R_RO_28(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 5))
	for range raceshare.Of(t, 300) {
		stages, detectors := boundPlan(random, 9)
		detectors = slices.DeleteFunc(detectors, func(d Detector) bool { _, bounded := d.(Bounded); return !bounded })
		bound := Bound(stages, detectors)
		worst, inAll := make([]int, len(stages)), 0
		for succeed := range bound.Nodes + 1 {
			for refuse := range bound.Nodes - succeed + 1 {
				run := newBoundRun(stages, detectors, succeed)
				run.patient(refuse)
				for i, broken := range run.after {
					worst[i], inAll = max(worst[i], broken), max(inAll, broken)
				}
			}
		}
		for i, s := range bound.Stages {
			if worst[i] != s.Broken {
				t.Fatalf("%+v, %s: at most %d nodes are broken after stage %q, the bound is %d", stages, boundNames(detectors), worst[i], s.Stage, s.Broken)
			}
		}
		if inAll != bound.Broken {
			t.Fatalf("%+v, %s: at most %d nodes are broken, the bound is %d", stages, boundNames(detectors), inAll, bound.Broken)
		}
	}
}

func boundNames(detectors []Detector) string {
	var names []string
	for _, d := range detectors {
		names = append(names, d.Name())
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// R-RO-28: the bound by hand: the failures that trip, and what is in flight besides the last of them.
func TestBoundByHand_R_RO_28(t *testing.T) {
	canary, rest := StageLoad{Name: "canary", Nodes: 1}, StageLoad{Name: "rest", Nodes: 999, InFlight: 50}
	for _, c := range []struct {
		name      string
		stages    []StageLoad
		detectors []Detector
		want      []int
		text      string
	}{
		{"one at a time", []StageLoad{{Name: "all", Nodes: 100, InFlight: 1}}, nil, []int{4}, "4 of 100 nodes before it is stopped in stage \"all\": detector \"CUSUM of 1% against 10% failures, limit 9.2\" trips at failure 4"},
		{"canary", []StageLoad{canary, rest}, nil, []int{1, 53}, "53 of 1000 nodes before it is stopped in stage \"rest\""},
		{"canary, all at once", []StageLoad{canary, {Name: "rest", Nodes: 999}}, nil, []int{1, 999}, "999 of 1000 nodes before it is stopped"},
		// One node succeeds; two of the first stage and the one of the second fail before the third stage meets the fourth failure.
		{"small stages", []StageLoad{{Name: "a", Nodes: 3, InFlight: 1}, {Name: "b", Nodes: 1}, {Name: "c", Nodes: 9, InFlight: 9}}, nil, []int{2, 3, 12}, "12 of 13 nodes"},
		{"count", []StageLoad{rest}, []Detector{Failures{At: intstr.FromInt32(2)}}, []int{51}, "trips at failure 2"},
		{"share of the nodes", []StageLoad{canary, rest}, []Detector{detectPercent("5%", OfNodes, 0)}, []int{1, 99}, "trips at failure 50"},
		// After 475 successes 474 failures are less than half; with 50 in flight, 524 are broken at the next one.
		{"share of the attempted", []StageLoad{{Name: "all", Nodes: 1000, InFlight: 50}}, []Detector{detectPercent("50%", OfAttempted, 0)}, []int{524}, "524 of 1000"},
		{"the first to trip", []StageLoad{rest}, []Detector{CUSUM{}, Failures{At: intstr.FromInt32(3)}, Failures{At: intstr.FromInt32(30)}}, []int{52}, "failures of 3 nodes\" trips"},
		{"off", []StageLoad{canary, rest}, []Detector{}, []int{1, 999}, "999 of 1000 nodes: no detector trips by the end of stage \"rest\""},
		{"a detector that does not say", []StageLoad{rest}, []Detector{Critical{Nodes: []string{"a"}}}, []int{998}, "no detector trips"},
		{"fewer nodes than it takes", []StageLoad{{Name: "all", Nodes: 3, InFlight: 1}}, nil, []int{2}, "no detector trips"},
		{"at once", []StageLoad{{Name: "all", Nodes: 3, InFlight: 3}}, nil, []int{3}, "those that are in flight there at the first failure"},
		{"nothing", []StageLoad{{Name: "all"}}, nil, []int{0}, "none of 0 nodes"},
		{"fewer than none", []StageLoad{{Name: "all", Nodes: -3, InFlight: -1}, {Name: "rest", Nodes: 9, InFlight: -1}}, nil, []int{0, 9}, "9 of 9 nodes"},
		{"no stage", nil, nil, nil, "none of 0 nodes"},
	} {
		b := Bound(c.stages, c.detectors)
		var got []int
		for _, s := range b.Stages {
			got = append(got, s.Broken)
		}
		if !slices.Equal(got, c.want) || !strings.Contains(b.String(), c.text) {
			t.Errorf("%s: %v, %q, want %v, %q", c.name, got, b, c.want, c.text)
		}
	}
}

// R-RO-28: a limit is a number, or a percentage of all nodes that is rounded down and at least one.
func TestBoundAgainstLimit_R_RO_28(t *testing.T) {
	for _, c := range []struct {
		limit         string
		nodes, broken int
		want          string
	}{
		{"4", 100, 4, ""},
		{"4", 100, 5, "the limit is 4 (4)"},
		{"0", 100, 0, ""},
		{"0", 100, 1, "the limit is 0 (0)"},
		{"4%", 199, 7, ""},
		{"4%", 199, 8, "the limit is 7 (4%)"},
		{"1%", 10, 1, ""},
		{"1%", 10, 2, "the limit is 1 (1%)"},
		{"100%", 10, 10, ""},
		{"many", 10, 1, `limit "many"`},
	} {
		b := Blast{Nodes: c.nodes, Broken: c.broken, Stages: []StageBlast{{Stage: "all", Broken: c.broken, Failures: c.broken}}}
		reason, exceeded := b.Exceeds(intstr.Parse(c.limit))
		if exceeded != (c.want != "") || !strings.Contains(reason, c.want) || exceeded != (reason != "") {
			t.Errorf("%d of %d against %s: %t %q, want %q", c.broken, c.nodes, c.limit, exceeded, reason, c.want)
		}
	}
}

// R-RO-28: what is in flight follows from the caps.
func TestBoundInFlight_R_RO_28(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 6))
	for range raceshare.Of(t, 2000) {
		keys := make([][]string, random.IntN(9))
		for i := range keys {
			for _, kind := range []string{"zone/", "group/"} {
				if n := random.IntN(4); n > 0 {
					keys[i] = append(keys[i], kind+string(rune('a'+n)))
				}
			}
		}
		caps := []protocol.Cap{{Max: 1 + random.IntN(9)}}
		kinds := 1 + random.IntN(2)
		for range random.IntN(5) {
			kind := []string{"zone/", "group/"}[random.IntN(kinds)]
			caps = append(caps, protocol.Cap{Key: kind + string(rune('a'+random.IntN(4))), Max: 1 + random.IntN(3)})
		}
		got, most := boundInFlight(boundSets(keys), caps), boundMost(keys, caps)
		if got < most || kinds == 1 && got > most {
			t.Fatalf("%v under %v: %d, want %d", keys, caps, got, most)
		}
	}
	if got := boundInFlight(boundSets([][]string{{"zone/a"}, {"zone/b"}}), nil); got != 2 {
		t.Errorf("without caps: %d, want 2", got)
	}
}

// boundSets are nodes by what they count for.
func boundSets(keys [][]string) (sets []boundSet) {
	for _, ks := range keys {
		i := slices.IndexFunc(sets, func(s boundSet) bool { return slices.Equal(s.keys, ks) })
		if i < 0 {
			i, sets = len(sets), append(sets, boundSet{keys: ks})
		}
		sets[i].nodes++
	}
	return sets
}

// boundMost tries all sets of nodes.
func boundMost(keys [][]string, caps []protocol.Cap) int {
	most := 0
	for set := range 1 << len(keys) {
		size, ok := 0, true
		used := map[string]int{}
		for i, ks := range keys {
			if set>>i&1 == 1 {
				size++
				used[""]++
				for _, k := range ks {
					used[k]++
				}
			}
		}
		for _, c := range caps {
			ok = ok && used[c.Key] <= c.Max
		}
		if ok {
			most = max(most, size)
		}
	}
	return most
}

func BenchmarkBound(b *testing.B) {
	stages := make([]StageLoad, 20)
	for i := range stages {
		stages[i] = StageLoad{Nodes: 250, InFlight: 50}
	}
	for b.Loop() {
		Bound(stages, []Detector{CUSUM{}, detectPercent("5%", OfAttempted, 20)})
	}
}
