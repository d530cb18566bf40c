// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
)

// quorum wants the members that remain to be able to decide. A machine that is a member no more, as when its end was interrupted, passes. A member whose machine has
// not passed the checks of its roles yet can't be counted on, whatever the store says of it.
func (g *gates) quorum() {
	if !g.MembersKnown {
		if i := slices.IndexFunc(g.ending, g.mayBeMember); i >= 0 {
			g.find(GateQuorum, Block, g.ending[i].Key, "may be a member of the cluster's store, which could not be asked")
		}
		return
	}
	var all, going, staying voters
	for _, m := range g.Members {
		switch {
		case m.Learner:
		case m.Machine == Key{} && slices.ContainsFunc(g.ending, g.mayBeMember):
			g.find(GateQuorum, Block, Key{}, "member %q runs on no machine that is known: it may be one that is to end", m.Name)
			return
		case g.ends[m.Machine]:
			going.add(m, false)
			all.add(m, false)
		default:
			staying.add(m, g.starting[m.Machine])
			all.add(m, false)
		}
	}
	if going.n > 0 {
		g.remain(all, going, staying)
	}
}

// remain judges voters that go and stay.
func (g *gates) remain(all, going, staying voters) {
	switch {
	case staying.n == 0:
		g.find(GateQuorum, Block, Key{}, "none of the %d members would remain", all.n)
	case all.healthy < all.quorum():
		g.find(GateQuorum, Block, Key{}, "the members can't decide, not even on who leaves: %d of %d are healthy, %d have to be", all.healthy, all.n, all.quorum())
	case staying.healthy < staying.n && going.healthy > 0:
		g.find(GateQuorum, Block, Key{}, "%s: mend it, or let it go first", staying.unhealthy)
	case staying.healthy < staying.quorum():
		g.find(GateQuorum, Block, Key{}, "%d of the %d members that would remain are healthy, %d have to be", staying.healthy, staying.n, staying.quorum())
	case staying.healthy == staying.quorum():
		g.find(GateQuorum, Warn, Key{}, "%d of %d members would remain, and not one of them may fail then", staying.n, all.n)
	case going.n > 1:
		g.find(GateQuorum, Warn, Key{}, "%d members of %d are to go: one at a time, each when the others have settled", going.n, all.n)
	}
}

// mayBeMember reports whether a machine may run a member by its roles: with machines of their own for that, those alone.
func (g *gates) mayBeMember(m *Machine) bool {
	for i := range g.Machines {
		if has(RoleEtcd)(&g.Machines[i]) {
			return has(RoleEtcd)(m)
		}
	}
	return has(RoleControlPlane)(m)
}

// voters are members with a vote.
type voters struct {
	n, healthy int
	// unhealthy says which one can't be counted on.
	unhealthy string
}

func (v *voters) add(m Member, starting bool) {
	v.n++
	switch {
	case !m.Healthy:
		v.unhealthy = cmp.Or(v.unhealthy, fmt.Sprintf("member %q is unhealthy", m.Name))
	case starting:
		v.unhealthy = cmp.Or(v.unhealthy, fmt.Sprintf("member %q is on a machine that has not started yet", m.Name))
	default:
		v.healthy++
	}
}

func (v voters) quorum() int { return v.n/2 + 1 }
