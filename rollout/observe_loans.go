// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// loans counts what others have broken of the rollout's nodes, as a machine that failed to be updated: for the detectors it is a failure like another one,
// once for each holder, and a critical node stops the rollout at once. What other nodes they break is no evidence here.
func (p *plan) loans() {
	for i := range p.ledger.Slots {
		s := &p.ledger.Slots[i]
		_, holder, ok := s.Borrower()
		if !ok || s.State != protocol.SlotBroken || !p.concerns(s.UID) {
			continue
		}
		if slices.ContainsFunc(p.progress.Outcomes, func(o Outcome) bool { return o.UID == holder }) {
			continue
		}
		p.progress.Outcomes = append(slices.Clip(p.progress.Outcomes), Outcome{Node: s.Node, UID: holder, Result: FailedBroken, At: p.now})
		if m := p.byUID[s.UID]; m >= 0 && p.isCritical(p.nodes[m].node) {
			p.freeze("critical", fmt.Sprintf("node %q is critical, and what somebody else did with it has failed", s.Node))
		}
	}
}

// concerns reports whether a node is one of the rollout's, or was when it began.
func (p *plan) concerns(uid string) bool {
	if m, here := p.find(uid); here {
		return p.nodes[m].group >= 0
	}
	_, member := slices.BinarySearch(p.progress.Members, uid)
	return member
}
