// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Kind is what an act must lead to.
type Kind string

// The kinds.
const (
	// Complete: every node runs the revision.
	Complete Kind = "completed"
	// Stop: the rollout stops by itself, with no more broken nodes than it has said before, and each of them runs again what it ran before.
	Stop Kind = "stopped itself"
	// Back: somebody asks for an entry of the history, and every node runs that.
	Back Kind = "went back"
)

// An Act is one thing that is asked of the fleet.
type Act struct {
	Kind Kind
	// Name is that of the revision that is rolled out; What says in a word what it is like.
	Name, What string
	// Good is the name of the revision that broken nodes go back to; that of the act itself where all nodes end with it.
	Good string
	// Push and Expect are one sentence each: what is done, and what should happen.
	Push, Expect string
}

// Title names the act.
func (a Act) Title() string { return a.Name + " " + a.What }

// Seen is what was seen of the fleet at one moment.
type Seen struct {
	// Nodes is how many there are, Runs how many run which revision; "" is the config that they came with. A process that does not run is not there.
	Nodes int
	Runs  map[string]int
	// Crashed is how many nodes the revision of the act has broken, and Again how many of those run the good one now.
	Crashed, Again int
	// Away is how many nodes have a slot now, Most how many had at a time at most, Cap how many may.
	Away, Most, Cap int
	// Bound is how many nodes could be broken, by what the status said when the rollout began; -1 where it has not said it yet.
	Bound int64
	// Status is that of the Rollout, once it is about what was asked for; nil before.
	Status *v1alpha1.RolloutStatus
}

// inFlight is how many nodes are away by the status.
func (s Seen) inFlight() int64 {
	if s.Status.Counts == nil {
		return 0
	}
	return s.Status.Counts.InFlight
}

// Missing is what was expected and not seen yet, and what was seen and must never be.
func (a Act) Missing(s Seen) []string {
	var missing []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	need(s.Most <= s.Cap, "at most %d nodes are away at a time (%d were)", s.Cap, s.Most)
	if s.Status == nil {
		return append(missing, "the controller looks at it")
	}
	phase := rollout.Phase(s.Status.Phase)
	if a.Kind == Stop {
		need(phase == rollout.Frozen && s.Status.Acknowledged, "the rollout stops by itself (it is %s)", phase)
		need(s.Away == 0 && s.inFlight() == 0, "what was under way has ended (%d nodes are away)", s.Away)
		need(s.Crashed > 0, "the revision breaks a node")
		need(s.Bound >= 0 && int64(s.Crashed) <= s.Bound, "no more nodes break than was said before, %d (%d did)", s.Bound, s.Crashed)
		need(s.Again == s.Crashed, "each broken node runs %s again (%d of %d)", a.Good, s.Again, s.Crashed)
		return missing
	}
	need(phase == rollout.Completed, "the rollout ends (it is %s)", phase)
	need(s.Runs[a.Name] == s.Nodes, "every node runs %s (%d of %d)", a.Name, s.Runs[a.Name], s.Nodes)
	need(s.Away == 0, "no node is away (%d are)", s.Away)
	return missing
}

// Acts are the whole play.
func Acts() []Act {
	return []Act{
		{
			Kind: Complete, Name: First, What: "good", Good: First,
			Push:   "v1 is a good config. It goes to the canaries, then to a third of the fleet, then to the rest; each node is drained for it.",
			Expect: "Every node must end up with v1, and no more nodes may be away at a time than the cap allows.",
		},
		{
			Kind: Stop, Name: Fatal, What: "fatal", Good: First,
			Push: "v2 has failSwapOn: true. It decodes, it is valid, and it is fine on the canaries; a kubelet on a machine with swap exits. " +
				"A third of the other machines have swap, and nobody knows.",
			Expect: "The rollout must stop by itself, with no more broken nodes than its status has said beforehand. Each broken node must go back to v1 by itself.",
		},
		{
			Kind: Back, Name: First, What: "again", Good: First,
			Push:   "Somebody asks for the entry of the history that was v1, by its number: the nodes that run v2 well go back, too.",
			Expect: "Every node must end up with v1.",
		},
	}
}

// Names of the revisions.
const (
	First = "v1"
	Fatal = "v2"
)
