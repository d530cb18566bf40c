// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// A prompt fleet is one whose controller looks whenever something has happened, and whose agents take the same time for each attempt.
type promptFleet struct {
	*fleet
	cycle    time.Duration
	approve  time.Duration
	approval time.Time
	ends     map[string]time.Time // by name
	turns    []Turn
	under    int // how many attempts are under way when the simulation begins
}

// moment lets everything happen that happens now.
func (f *promptFleet) moment() {
	f.t.Helper()
	for range 50 {
		before := encode(f.t, f.s)
		for _, n := range f.plan().Nodes {
			f.obey(n)
			if n.Do == protocol.EventAdmit {
				f.turns = append(f.turns, Turn{Node: n.Node, Begin: f.now})
			}
		}
		for i := range f.s.Nodes {
			if n := &f.s.Nodes[i]; n.Shadow != nil {
				f.act(n)
			}
		}
		if encode(f.t, f.s) == before {
			return
		}
	}
	f.t.Fatalf("the fleet does not come to rest at %s: %s", f.now, f.last.Message)
}

// act lets an agent do all that takes no time.
func (f *promptFleet) act(n *Node) {
	for range 3 {
		switch n.Shadow.Report.Phase {
		case protocol.PhaseApplying, protocol.PhaseVerifying:
			if end, ok := f.ends[n.Name]; !ok {
				f.ends[n.Name] = f.now.Add(f.cycle)
				return
			} else if end.After(f.now) {
				return
			}
			f.agent(n)
			if n.Shadow.Report.Phase == protocol.PhaseDone {
				n.Away, n.Health = "", Verdict{Answer: Allow}
			}
		default:
			delete(f.ends, n.Name)
			f.agent(n)
			return
		}
	}
}

// forward lets time pass up to the next event; false if there is none.
func (f *promptFleet) forward() bool {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, end := range f.ends {
		sooner(end)
	}
	if f.last.After > 0 {
		sooner(f.now.Add(f.last.After))
	}
	switch waits := f.last.Reason == ReasonApproval && f.approve > 0; {
	case !waits:
		f.approval = time.Time{}
	case f.approval.IsZero():
		f.approval = f.now.Add(f.approve)
	}
	if !f.approval.IsZero() {
		sooner(f.approval)
	}
	f.now = next
	if f.approval.Equal(next) && !next.IsZero() {
		f.p.Verb, f.approval = Verb{Request: "approve-" + next.String(), Do: Promote}, time.Time{}
	}
	return !next.IsZero()
}

// I12: from any moment of a rollout on, the simulation says what is done in a fleet in which all goes well from then on, and when: which nodes are begun, which
// never, when the stages end, and where the rollout stands at last.
func TestSimulationIsWhatHappens(t *testing.T) {
	seeds := []uint64{rand.Uint64()}
	for i := range raceshare.Of(t, uint64(150)) {
		seeds = append(seeds, i)
	}
	ended := map[Ending]int{}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 12))
			f := randomPromptFleet(t, r)
			f.someWay(r)
			sim, err := Simulate(f.s, f.p, f.now, Assumptions{Cycle: f.cycle, WorstCycle: f.cycle, ApproveAfter: f.approve, Within: 9 * 24 * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			f.wantCourse(sim.Expected)
			ended[sim.Expected.Ending]++
		})
	}
	if least := raceshare.Of(t, 20); ended[EndCompleted] < least || ended[EndStalled] < least {
		t.Errorf("the rollouts have ended as %v, want %d of each", ended, least)
	}
}

func randomPromptFleet(t *testing.T, r *rand.Rand) *promptFleet {
	f := &promptFleet{fleet: randomFleet(t, r), ends: map[string]time.Time{}, cycle: time.Duration(1+r.IntN(11)) * 10 * time.Second}
	f.p.LoseQuorum = r.IntN(3) > 0
	if len(f.p.Stages) > 1 && r.IntN(3) == 0 {
		f.p.Stages[0].Approval = true
		f.approve = time.Duration(r.IntN(3)) * 7 * time.Minute
	}
	for i := range f.s.Nodes {
		switch n := &f.s.Nodes[i]; r.IntN(25) {
		case 0:
			n.Away = "not ready"
		case 1:
			n.Health = Verdict{Answer: Deny, RetryAfter: time.Minute}
		case 2:
			n.Shadow = nil
		}
	}
	return f
}

// someWay brings the rollout to some moment, with failures and requests on the way, or to none.
func (f *promptFleet) someWay(r *rand.Rand) {
	for range r.IntN(3) * r.IntN(20) {
		if r.IntN(15) == 0 {
			f.ask(r, f.s.Nodes[r.IntN(len(f.s.Nodes))].Name)
		}
		f.moment()
		if !f.forward() {
			break
		}
	}
	f.fails, f.turns = nil, nil
	f.approval = time.Time{} // nobody knows how long it has been waited for
	f.under = 0
	for _, s := range f.s.Ledger.Slots {
		if s.Rollout == f.p.UID {
			f.under++
		}
	}
	for i := range f.s.Nodes {
		f.s.Nodes[i].Health.RetryAfter = 0
	}
}

// wantCourse lets the rollout go on to its end.
func (f *promptFleet) wantCourse(c Course) {
	f.t.Helper()
	end := f.now.Add(9 * 24 * time.Hour)
	for {
		f.moment()
		if !f.forward() || f.now.After(end) {
			break
		}
	}
	var turns []Turn
	for _, turn := range c.Turns[f.under:] {
		if !turn.Retry {
			turns = append(turns, Turn{Node: turn.Node, Begin: turn.Begin})
		}
	}
	if got, want := sequence(turns), sequence(f.turns); got != want {
		f.t.Fatalf("I12: the simulation has begun\n%s\nand the fleet\n%s\n(%s; %s)\nfrom %s: %+v\nstages %+v", got, want, c.Message, f.last.Message, c.Begin, c.Turns[:min(6, len(c.Turns))], c.Stages)
	}
	if c.Phase != f.last.Phase || c.Reason != f.last.Reason || c.Message != f.last.Message {
		f.t.Errorf("I12: the simulation ends with %s, %s: %s\nand the fleet with %s, %s: %s", c.Phase, c.Reason, c.Message, f.last.Phase, f.last.Reason, f.last.Message)
	}
	f.wantLeft(c)
}

// wantLeft: what the simulation leaves is what the fleet has left.
func (f *promptFleet) wantLeft(c Course) {
	f.t.Helper()
	left := map[string]Reason{}
	for _, l := range c.Left {
		left[l.Node] = l.Why.Reason
	}
	for _, n := range f.last.Nodes {
		if why, ok := left[n.Node]; ok != (n.Why.Reason != ReasonUpToDate && n.Why.Reason != ReasonInFlight) || ok && why != n.Why.Reason {
			f.t.Errorf("I12: node %q is left as %q by the simulation, and as %q in the fleet: %s", n.Node, why, n.Why.Reason, n.Why.Message)
		}
	}
}

func sequence(turns []Turn) (text string) {
	for _, t := range turns {
		text += fmt.Sprintf("%s at %s\n", t.Node, t.Begin.UTC().Format(time.RFC3339))
	}
	return text
}

// The same input gives the same simulation, whatever the order of the nodes, and is not changed.
func TestSimulationIsPure(t *testing.T) {
	for seed := range raceshare.Of(t, uint64(20)) {
		r := rand.New(rand.NewPCG(seed, 13))
		f := randomPromptFleet(t, r)
		f.someWay(r)
		before := encode(t, f.s)
		one, err := Simulate(f.s, f.p, f.now, Assumptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.s.Nodes = slices.Clone(f.s.Nodes)
		after := encode(t, f.s)
		r.Shuffle(len(f.s.Nodes), func(i, j int) { f.s.Nodes[i], f.s.Nodes[j] = f.s.Nodes[j], f.s.Nodes[i] })
		two, err := Simulate(f.s, f.p, f.now, Assumptions{})
		if a, b := encode(t, one), encode(t, two); err != nil || a != b || before != after {
			t.Fatalf("seed %d: simulated\n%s\nand\n%s\n%v; the input is the same: %t", seed, a, b, err, before == after)
		}
	}
}
