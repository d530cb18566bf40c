// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/rollout/protocol"
)

// rescues says that nodes that a revision before has broken have to recover first, or nil.
func (p *plan) rescues() *Why {
	if !p.progress.Rescue {
		return nil
	}
	broken, stranded := p.brokenNodes()
	switch {
	case broken == 0:
		p.progress.Rescue = false
		return nil
	case broken == len(stranded):
		return strandedWhy("the nodes that are broken get the revision first", stranded)
	}
	return &Why{Reason: reasonRescue, Message: "the nodes that are broken get the revision first, and none has recovered yet"}
}

// stranding is why fresh nodes don't get a revision that has failed: somebody has to do something if no node is left on which it could still succeed.
func (p *plan) stranding(failed string) *Why {
	broken, stranded := p.brokenNodes()
	hope := slices.ContainsFunc(p.nodes, func(m member) bool {
		return m.group >= 0 && (m.class == flying || m.class == resting || m.class == waiting && m.retried)
	})
	if hope || broken == 0 || broken > len(stranded) {
		return &Why{Reason: reasonFailing, Message: failed}
	}
	return strandedWhy(failed, stranded)
}

func strandedWhy(what string, nodes []string) *Why {
	more := ""
	if n := len(nodes) - named; n > 0 {
		more = fmt.Sprintf(" and %d others", n)
	}
	return &Why{Reason: ReasonStranded, Message: fmt.Sprintf("%s, and none of the broken ones answers or can be tried any more: %s%s",
		what, strings.Join(nodes[:min(named, len(nodes))], ", "), more)}
}

// brokenNodes counts the broken nodes, and names those that are stranded. A suspect one is none of them: it is silent, and is said to be.
func (p *plan) brokenNodes() (broken int, stranded []string) {
	for i := range p.flights {
		f := &p.flights[i]
		if f.member < 0 || !isBad(f.slot.State) {
			continue
		}
		broken++
		if p.stranded(f) {
			stranded = append(stranded, strconv.Quote(f.slot.Node))
		}
	}
	return broken, stranded
}

// stranded reports whether a broken node won't recover by what is tried, as far as anybody knows: it has failed as often as it may, is not selected any more, has
// not answered as many attempts, or is silent in one for longer than it may be.
func (p *plan) stranded(f *flight) bool {
	m, e := &p.nodes[f.member], p.progress.Nodes[f.slot.UID]
	switch f.state {
	case protocol.Retrying:
		return m.group < 0 || e.Deferrals >= p.attempts()
	case protocol.FailedBroken:
		return m.group < 0 || m.class == spent
	}
	return m.group < 0 || disrupts(f.state) && p.passed(e.Since, p.within(f.state))
}
