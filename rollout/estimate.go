// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// expectedEnd is when all nodes should have had their turn, if they go on as those before them: zero if that hangs on people, gates or windows, or if
// it is not known how long a node takes. [Simulate] says it exactly, and takes its time.
func (p *plan) expectedEnd() time.Time {
	cycle := p.usualCycle()
	waits := p.holdWhy != nil && p.holdWhy.Reason != reasonSoak
	if phase := p.progress.Phase; cycle == 0 || waits || len(p.policy.Windows) > 0 || phase != Running && phase != AtGate {
		return time.Time{}
	}
	var left time.Duration
	for i, load := range p.loads() {
		s := &p.stages[i]
		switch {
		case i < p.progress.Stage:
			continue
		case s.Approval:
			return time.Time{}
		case i == p.progress.Stage:
			now := p.standing(i)
			load.Nodes = max(0, now.need-now.done-now.settled)
		}
		if load.Nodes > 0 {
			per := max(1, load.InFlight)
			left += time.Duration((load.Nodes+per-1)/per) * cycle
		}
		left += p.soaks(i)
	}
	return p.now.Add(left)
}

// usualCycle is how long a node takes as a rule: what half of the last ones have taken, else what the policy says, else zero.
func (p *plan) usualCycle() time.Duration {
	if len(p.progress.Cycles) < enough {
		return p.policy.Cycle
	}
	sorted := slices.Sorted(slices.Values(p.progress.Cycles))
	return sorted[len(sorted)/2]
}

// soaks is how long a stage still has to soak.
func (p *plan) soaks(stage int) time.Duration {
	soak := p.stages[stage].Soak
	if since := p.progress.SoakSince; stage == p.progress.Stage && !since.IsZero() {
		soak -= p.now.Sub(since)
	}
	return max(0, soak)
}
