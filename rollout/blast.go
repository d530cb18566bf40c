// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

// tooMany says that more nodes could be broken before the rollout stops than the policy allows, or nil.
func (p *plan) tooMany() *Why {
	if p.policy.MaxBroken == nil || p.asked {
		return p.excess
	}
	p.asked = true
	if reason, over := p.worst().Exceeds(*p.policy.MaxBroken); over {
		p.excess = &Why{Reason: ReasonBound, Message: reason}
	}
	return p.excess
}

// worst is what [Bound] says of the rollout, from its beginning to its end.
func (p *plan) worst() Blast {
	if p.blast == nil {
		b := Bound(p.loads(), p.policy.Detectors)
		p.blast = &b
	}
	return *p.blast
}

// loads are the stages as [Bound] sees them: which nodes they begin, if all goes by name, and how many of them at a time.
func (p *plan) loads() []StageLoad {
	if p.load != nil {
		return p.load
	}
	begun := reuse(&p.mem.begun, len(p.nodes))
	p.load = make([]StageLoad, 0, len(p.stages))
	for i := range p.stages {
		load := StageLoad{Name: p.stages[i].Name}
		sets := p.starts(i, begun)
		for _, s := range sets {
			load.Nodes += s.nodes
		}
		load.InFlight = boundInFlight(sets, p.capsOf(i))
		p.load = append(p.load, load)
	}
	return p.load
}

// starts begins the nodes of one stage, and returns what their slots count for.
func (p *plan) starts(stage int, begun []bool) []boundSet {
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
	var sets []boundSet
	known := reuseMap(&p.mem.starts, 0)
	for i := range p.nodes {
		m := &p.nodes[i]
		if m.group < 0 || begun[i] || !p.takes(stage, int(m.group)) || before >= need {
			continue
		}
		begun[i] = true
		before++
		of := p.setFor(m)
		at, ok := known[of]
		if !ok {
			at = len(sets)
			known[of], sets = at, append(sets, boundSet{keys: p.keys(of)})
		}
		sets[at].nodes++
	}
	return sets
}
