// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// Assumptions are what [Simulate] takes for granted.
type Assumptions struct {
	// Cycle is how long a node takes from its slot to its end. Zero means the median of the cycles of the rollout so far, and before there are 5 what
	// WorstCycle is.
	Cycle time.Duration
	// WorstCycle is how long it takes at worst: what the policy says, and else 19 of 20 of those so far, as [Policy].Cycle has it, if this is zero.
	WorstCycle time.Duration
	// ApproveAfter is how long a stage that needs an approval waits for it, from the beginning of the simulation if it waits already. Zero means that
	// it never comes.
	ApproveAfter time.Duration
	// Within is how far the simulation looks ahead, and Steps how often it lets Plan decide at most. Zero means a year, and 10,000 times besides 5
	// times for each node.
	Within time.Duration
	Steps  int
}

// A Simulation is what will become of a rollout.
type Simulation struct {
	// Expected is how it goes if each node takes its expected time, Worst if each takes the worst.
	Expected, Worst Course
	// Blast is the worst that a fatal revision does: see [Bound].
	Blast Blast
}

// A Course is one way in which a rollout goes.
type Course struct {
	// Begin is when the simulation begins. End is when the last attempt has ended or the last stage is passed, or up to when it was followed; Ending
	// says which.
	Begin, End time.Time
	Ending     Ending
	// Phase, Reason and Message say where the rollout stands then, as [Decisions] does.
	Phase   Phase
	Reason  Reason
	Message string
	// Stages are those of the policy.
	Stages []StageCourse
	// Turns are all attempts: first those that are under way at the beginning, then the others in the order in which they are begun.
	Turns []Turn
	// Waits are what holds up nodes, the longest first.
	Waits []Wait
	// Left are the nodes that don't run their revision at the end, in order, but for those whose attempt is under way.
	Left []Left
	// Steps is how often Plan was asked.
	Steps int
}

// An Ending says why a simulation ends.
type Ending string

// Endings.
const (
	// EndCompleted: all stages are passed, and nothing more follows. Nodes may be left.
	EndCompleted Ending = "Completed"
	// EndStalled: nothing more follows unless somebody does something, and stages are left.
	EndStalled Ending = "Stalled"
	// endOfTime and EndOfSteps: it was not followed any further.
	endOfTime  Ending = "OutOfTime"
	endOfSteps Ending = "OutOfSteps"
)

// A StageCourse is how one stage goes.
type StageCourse struct {
	Name string
	// Begin and End are when it is under way, its soak, gates and approval included. Both are zero if it was passed before the simulation or is
	// not reached; End is zero if it is not passed.
	Begin, End time.Time
	// Turns is how many attempts are begun while it is under way.
	Turns int
}

// A Turn is one attempt on one node.
type Turn struct {
	Node, UID string
	// Stage is the stage under way when it is begun.
	Stage int
	// Begin is when the node gets its slot, End when it gives it back; zero if it doesn't.
	Begin, End time.Time
	// Retry: it is a further attempt on a broken node, in its slot.
	Retry bool
	// Waits are what the node has waited for before.
	Waits []Wait
}

// A Wait is for how long something holds up nodes.
type Wait struct {
	Reason Reason
	// Message is the one of the first time.
	Message string
	// For is for how long in all. Of the waits of a course it is how long there was any node that waited for it, and Nodes how many did.
	For   time.Duration
	Nodes int
}

// A Left is a node that doesn't run its revision at the end.
type Left struct {
	Node, UID string
	// Why is why it does not go on then.
	Why Why
	// Waits are what it has waited for since its last turn.
	Waits []Wait
}

// Simulate says ahead how a rollout goes: what [Plan] decides, again and again, if from now on all goes well. The snapshot may be of a rollout that
// is under way. It is as deterministic as Plan, and has no effects.
//
// All goes well means: each attempt that is under way or begun succeeds, and takes as long as assumed from the slot to its end; one that takes longer
// already ends at once. A drain takes no time of its own, unless the snapshot shows that it is blocked: then it stays so. Nobody joins, leaves or asks
// for anything, apart from approvals. Nodes that are sick, away, suspect or without an agent stay so, and so do gates. Orders are obeyed as soon as
// they are given; where the controller looks from time to time alone, each turn begins that much later.
//
// It takes some 1 ms for each moment at which something happens in a fleet of 5,000 nodes: about as many as there are nodes if they go
// one by one, and few if they go in steps.
func Simulate(s Snapshot, policy Policy, now time.Time, a Assumptions) (Simulation, error) {
	if err := policy.Validate(); err != nil {
		return Simulation{}, err
	}
	if err := a.complete(&s, &policy); err != nil {
		return Simulation{}, err
	}
	w := newSimWorld(s, policy, now, a, a.Cycle)
	sim := Simulation{Blast: w.first.worst()}
	var err error
	if sim.Expected, err = w.run(); err != nil {
		return Simulation{}, err
	}
	sim.Worst = sim.Expected
	if a.WorstCycle != a.Cycle {
		sim.Worst, err = newSimWorld(s, policy, now, a, a.WorstCycle).run()
	}
	return sim, err
}

// What zero assumptions mean.
const (
	defaultWithin = 366 * day
	defaultSteps  = 10_000
	stepsPerNode  = 5
)

// complete puts in what zero means.
func (a *Assumptions) complete(s *Snapshot, policy *Policy) error {
	cycles := s.Progress.Cycles
	for _, f := range []struct {
		field string
		value time.Duration
	}{{"cycle", a.Cycle}, {"worstCycle", a.WorstCycle}, {"approveAfter", a.ApproveAfter}, {"within", a.Within}} {
		if f.value < 0 {
			return invalid("assumptions."+f.field, f.value, "0 or more")
		}
	}
	if a.Steps < 0 {
		return invalid("assumptions.steps", a.Steps, "0 or more")
	}
	a.WorstCycle = orDefault(a.WorstCycle, max(a.Cycle, cycleOf(policy.Cycle, cycles)))
	if a.Cycle == 0 && len(cycles) >= enough {
		sorted := slices.Sorted(slices.Values(cycles))
		a.Cycle = min(a.WorstCycle, sorted[len(sorted)/2])
	}
	a.Cycle = orDefault(a.Cycle, a.WorstCycle)
	if a.WorstCycle < a.Cycle {
		return invalid("assumptions.worstCycle", a.WorstCycle, "at least the expected cycle, "+a.Cycle.String())
	}
	a.Within = orDefault(a.Within, defaultWithin)
	if a.Steps == 0 {
		a.Steps = defaultSteps + stepsPerNode*len(s.Nodes)
	}
	return nil
}
