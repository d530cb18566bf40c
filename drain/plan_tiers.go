// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// policyTiers lists the tiers that a policy has, in order: those of its rules, and 0. They are the policy's and not those of the pods
// that are still there, or the time of a tier would get shorter when an earlier one is done.
func policyTiers(p *Policy) []int32 {
	tiers := make([]int32, 1, len(p.Rules)+2)
	for i := range p.Rules {
		tiers = append(tiers, p.Rules[i].Tier)
	}
	slices.Sort(tiers)
	return slices.Compact(tiers)
}

// tierEnd is when a tier stops to hold up the next; zero for never.
func (n *nodePass) tierEnd(tier int32) time.Time {
	d := n.p.TierDeadline
	i, _ := slices.BinarySearch(n.tiers, tier)
	if d <= 0 || n.view.Started.IsZero() || d > math.MaxInt64/time.Duration(i+1) {
		return time.Time{}
	}
	return n.view.Started.Add(time.Duration(i+1) * d)
}

// gate marks the pods that an earlier tier holds up. The pods are in order: it is enough to look at the last tier before. Peers never
// hold up each other.
func (n *nodePass) gate() {
	var current int32
	var any, gated bool
	for i := range n.work {
		w := &n.work[i]
		if w.Action == Skip {
			continue
		}
		if any && w.Tier != current {
			end := n.tierEnd(current)
			gated = end.IsZero() || n.now.Before(end)
			if gated {
				n.wake(end)
			}
		}
		any, current = true, w.Tier
		w.gated = gated
	}
}

// waitForOrder says for how many pods.
func (n *nodePass) waitForOrder(w *podWork) {
	earlier := 0
	for i := range n.work {
		if o := &n.work[i]; o.Action != Skip && o.Tier < w.Tier {
			earlier++
		}
	}
	name := fmt.Sprintf("tier %d", w.Tier)
	if w.Tier == planDaemonTier {
		name = "a pod of a DaemonSet"
	}
	w.decide(Wait, WaitingForOrder, fmt.Sprintf("%s comes after %d pods that are still there", name, earlier))
}
