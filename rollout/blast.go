// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

// tooMany says that more nodes could be broken before the rollout stops than the policy allows, or nil.
func (p *plan) tooMany() *Why {
	if p.policy.MaxBroken == nil || p.asked {
		return p.excess
	}
	p.asked = true
	if reason, over := Bound(p.loads(), p.policy.Detectors).Exceeds(*p.policy.MaxBroken); over {
		p.excess = &Why{Reason: ReasonBound, Message: reason}
	}
	return p.excess
}

// loads are the stages as [Bound] sees them: which nodes they begin, if all goes by name, and how many of them at a time.
func (p *plan) loads() []StageLoad {
	begun := make([]bool, len(p.nodes))
	loads := make([]StageLoad, 0, len(p.stages))
	for i := range p.stages {
		keys := p.starts(i, begun)
		load := StageLoad{Name: p.stages[i].Name, Nodes: len(keys), InFlight: boundInFlight(keys, p.capsOf(i))}
		loads = append(loads, load)
	}
	return loads
}

// starts begins the nodes of one stage, and returns what their slots count for.
func (p *plan) starts(stage int, begun []bool) [][]string {
	total, before := 0, 0
	for i := range p.nodes {
		if m := &p.nodes[i]; m.group >= 0 && p.takes(stage, int(m.group)) {
			total++
			before += number(begun[i])
		}
	}
	need := total
	if size := p.stages[stage].Size; size != nil {
		need = min(total, amount(*size, total))
	}
	var keys [][]string
	sets := map[setOf][]string{}
	for i := range p.nodes {
		m := &p.nodes[i]
		if m.group < 0 || begun[i] || !p.takes(stage, int(m.group)) || before+len(keys) >= need {
			continue
		}
		begun[i] = true
		of := p.setFor(m)
		if sets[of] == nil {
			sets[of] = p.keys(of)
		}
		keys = append(keys, sets[of])
	}
	return keys
}
