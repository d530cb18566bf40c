// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Checks are static: each looks at the policy and the snapshot alone, so that a dry run with [Plan] says before anything is touched what it would say. With
// [Enforce] nothing is begun that it is against, with [Warn] that goes on, and either way it is among the [Decisions].Findings.
type Checks struct {
	// ControlPlane: the domain has nodes that [Policy].Serial selects. Without them either the control plane is somewhere else, or its nodes have lost
	// their labels and would go like any other one. Empty means that it is not checked.
	ControlPlane CheckMode
	// Quorum: with one more of those nodes away, a majority of them is available. Empty means [Enforce], and [Warn] with [Policy].LoseQuorum.
	Quorum CheckMode
	// Data: no pod has to go against its budget, which may guard the last copy of something: [ForceDrain] with an intrusive revision. Empty means that it is
	// not checked.
	Data CheckMode
	// Caps: each zone that a cap of the policy or of a stage names has a node of the domain. A name that is misspelt caps nothing. Empty means [Enforce]
	// until the rollout has begun, and [Warn] after that: a zone may lose its last node meanwhile. Groups and classes are checked by [Policy.Validate], and may be empty.
	Caps CheckMode
}

// A CheckMode is what a check does when it finds something.
type CheckMode string

// Modes of checks.
const (
	Enforce CheckMode = "Enforce"
	Warn    CheckMode = "Warn"
)

// A Finding is what a check has found.
type Finding struct {
	// Check is the field of [Checks], as "ControlPlane"; or "Nodes", a warning: the policy names nodes that have gone, or stages whose groups have none.
	Check string
	Mode  CheckMode
	// Message says it with numbers.
	Message string
}

// The names of the checks.
const (
	checkControlPlane = "ControlPlane"
	checkQuorum       = "Quorum"
	checkData         = "Data"
	checkCaps         = "Caps"
	checkNodes        = "Nodes"
)

// quorumMode is what the check of the quorum does.
func (policy *Policy) quorumMode() CheckMode {
	switch {
	case policy.Checks.Quorum != "":
		return policy.Checks.Quorum
	case policy.LoseQuorum:
		return Warn
	}
	return Enforce
}

// findings are those of all checks, in the order of the fields.
func (p *plan) findings() []Finding {
	all := p.beforehand()
	if why := p.lacksQuorum(); why != "" {
		i := slices.IndexFunc(all, func(f Finding) bool { return f.Check == checkData || f.Check == checkCaps })
		if i < 0 {
			i = len(all)
		}
		all = slices.Insert(all, i, Finding{checkQuorum, p.policy.quorumMode(), why})
	}
	if absent := p.absent(); len(absent) > 0 {
		all = append(all, Finding{checkNodes, Warn, someOf(absent)})
	}
	return all
}

// someOf names the first few of some errors.
func someOf(errs []error) string {
	texts := make([]string, 0, named+1)
	for _, err := range errs[:min(named, len(errs))] {
		texts = append(texts, err.Error())
	}
	if n := len(errs) - named; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

// beforehand are the findings that nothing of what happens changes.
func (p *plan) beforehand() []Finding {
	var all []Finding
	if mode := p.policy.Checks.ControlPlane; mode != "" && p.sizes.serial == 0 {
		all = append(all, Finding{checkControlPlane, mode, fmt.Sprintf("none of the %d nodes of the domain is one of the control plane, which go one at a time", p.sizes.domain)})
	}
	if mode := p.policy.Checks.Data; mode != "" && p.policy.StuckDrain == ForceDrain && p.sizes.intrusive > 0 {
		all = append(all, Finding{checkData, mode, fmt.Sprintf("%d nodes are drained, and pods that their budget keeps are forced out in the end: that may be the last copy of their data", p.sizes.intrusive)})
	}
	if why := p.strayCaps(); why != "" {
		all = append(all, Finding{checkCaps, cmp.Or(p.policy.Checks.Caps, p.capsMode()), why})
	}
	return all
}

// capsMode is what the check of caps is where nothing is said: a revision or an autoscaler may take the last node of a zone, and what is under way goes on.
func (p *plan) capsMode() CheckMode {
	if p.progress.Phase == Pending {
		return Enforce
	}
	return Warn
}

// strayCaps names the caps of zones in which there is no node, or nothing. A domain without nodes has nothing to keep.
func (p *plan) strayCaps() string {
	if p.sizes.domain == 0 {
		return ""
	}
	var stray []string
	look := func(field string, caps []Cap) {
		for i, c := range caps {
			if c.Scope == ByZone && c.Key != "" && !slices.Contains(p.zones, c.Key) {
				stray = append(stray, fmt.Sprintf("%s[%d] is for zone %q", field, i, c.Key))
			}
		}
	}
	look("caps", p.policy.Caps)
	for i := range p.policy.Stages {
		look(fmt.Sprintf("stages[%d].caps", i), p.policy.Stages[i].Caps)
	}
	if len(stray) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: none of the %d nodes of the domain is there, so that it keeps nothing back", strings.Join(stray, ", "), p.sizes.domain)
}

// lacksQuorum says that one more serial node must not go, or nothing. Those that are at their turn come back.
func (p *plan) lacksQuorum() string {
	up, left := 0, 0
	for i := range p.nodes {
		m := &p.nodes[i]
		if !m.serial {
			continue
		}
		if m.class == flying || m.node.Away == "" && m.class != broken && m.class != spent && m.class != lost {
			up++
		}
		if m.group >= 0 && m.class != done && m.class != flying {
			left++
		}
	}
	majority := p.sizes.serial/2 + 1
	if left == 0 || up-1 >= majority {
		return ""
	}
	return fmt.Sprintf("%d nodes of the control plane have their turn yet, %d of %d are available, and a majority is %d", left, up, p.sizes.serial, majority)
}

// checked says which enforced check is against the rollout, or nil.
func (p *plan) checked() *Why {
	for _, f := range p.beforehand() {
		if f.Mode == Enforce {
			return p.limits.share(ReasonCheck, "check "+f.Check+" does not allow it: "+f.Message)
		}
	}
	return nil
}

func (v *validator) checks() {
	c := &v.p.Checks
	for _, f := range []struct {
		field string
		mode  CheckMode
	}{{"checks.controlPlane", c.ControlPlane}, {"checks.quorum", c.Quorum}, {"checks.data", c.Data}, {"checks.caps", c.Caps}} {
		v.check(f.mode == "" || f.mode == Enforce || f.mode == Warn, f.field, string(f.mode), fmt.Sprintf("%q or %q", Enforce, Warn))
	}
	v.check(c.Quorum != Enforce || !v.p.LoseQuorum, "checks.quorum", string(c.Quorum), fmt.Sprintf("%q, or none, beside loseQuorum", Warn))
}
