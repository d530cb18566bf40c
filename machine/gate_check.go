// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// CheckEnd says what speaks against the end of machines. It is pure, and looks at lists alone: the same answers come of a cluster, of an admission
// review, and of files before they are applied. What it could not look at speaks against it.
func CheckEnd(v GateView) []Finding {
	g := newGates(v)
	for _, k := range v.Ending {
		if !g.known[k] {
			g.find(GateUnknown, Block, k, "there is no such machine")
		}
	}
	g.decommission()
	g.controlPlane()
	g.quorum()
	g.roles()
	g.localData()
	g.replicas()
	return g.found
}

// Blocker returns the messages of those findings that block, as one sentence; empty if none does.
func Blocker(findings []Finding) string {
	var all []string
	for _, f := range findings {
		if f.Severity == Block {
			all = append(all, f.String())
		}
	}
	return strings.Join(all, "; ")
}

// String returns "Gate: machine: message".
func (f Finding) String() string {
	if f.Machine == (Key{}) {
		return string(f.Gate) + ": " + f.Message
	}
	return string(f.Gate) + ": " + f.Machine.String() + ": " + f.Message
}

// gates are the questions under way.
type gates struct {
	GateView
	known, ends map[Key]bool
	// starting are those that have not joined yet, or whose roles are not known to work.
	starting map[Key]bool
	// ending are those that end, staying those that nobody wants to end.
	ending, staying []*Machine
	found           []Finding
}

func newGates(v GateView) *gates {
	g := &gates{GateView: v, known: map[Key]bool{}, ends: map[Key]bool{}, starting: map[Key]bool{}}
	for _, k := range v.Ending {
		g.ends[k] = true
	}
	for i := range v.Machines {
		m := &v.Machines[i]
		g.known[m.Key], g.starting[m.Key] = true, m.Phase == PhaseProvisioning || m.Phase == PhaseJoining
		switch {
		case g.ends[m.Key]:
			g.ending = append(g.ending, m)
		case m.Deleted.IsZero() && !m.Spec.Decommission:
			g.staying = append(g.staying, m)
		}
	}
	byKey := func(a, b *Machine) int { return compareKeys(a.Key, b.Key) }
	slices.SortFunc(g.ending, byKey)
	return g
}

func (g *gates) find(gate Gate, s Severity, about Key, format string, args ...any) {
	if s = cmp.Or(g.As[gate], s); s != Ignore {
		g.found = append(g.found, Finding{gate, s, about, fmt.Sprintf(format, args...)})
	}
}

func (g *gates) decommission() {
	for _, m := range g.ending {
		if Protected(m.Spec.Roles) && !m.Spec.Decommission {
			g.find(GateDecommission, Block, m.Key, "has roles %q and was not entered for its end: set spec.decommission first", m.Spec.Roles)
		}
	}
}

// controlPlane wants machines of the control plane to remain that work.
func (g *gates) controlPlane() {
	if !slices.ContainsFunc(g.ending, has(RoleControlPlane)) {
		return
	}
	remain, work := g.holders(RoleControlPlane)
	switch {
	case remain == 0:
		g.find(GateControlPlane, Block, Key{}, "no machine of the control plane would remain")
	case work == 0:
		g.find(GateControlPlane, Block, Key{}, "of the %d machines of the control plane that would remain, none is running", remain)
	case work == 1:
		g.find(GateControlPlane, Warn, Key{}, "one running machine of the control plane would remain, and nothing to stand in for it")
	}
}

func has(role string) func(*Machine) bool {
	return func(m *Machine) bool { return slices.Contains(m.Spec.Roles, role) }
}

// holders counts those who would remain with a role, and those of them that run.
func (g *gates) holders(role string) (remain, run int) {
	for _, m := range g.staying {
		if has(role)(m) {
			remain++
			run += one(m.Phase == PhaseRunning)
		}
	}
	return remain, run
}

// roles wants somebody else to have each role. The control plane has a question of its own.
func (g *gates) roles() {
	var asked []string
	for _, m := range g.ending {
		for _, r := range m.Spec.Roles {
			if r == RoleControlPlane || slices.Contains(asked, r) {
				continue
			}
			asked = append(asked, r)
			switch remain, run := g.holders(r); {
			case remain == 0:
				g.find(GateRole, Block, m.Key, "is the last with role %q", r)
			case run == 0:
				g.find(GateRole, Warn, m.Key, "of the %d other machines with role %q, none is running", remain, r)
			}
		}
	}
}

func (g *gates) localData() {
	for _, v := range g.Volumes {
		switch {
		case !g.ends[v.Machine]:
		case v.Claim != "":
			g.find(GateLocalData, Block, v.Machine, "volume %q of %s is on this machine alone", v.Name, v.Claim)
		default:
			g.find(GateLocalData, Warn, v.Machine, "volume %q is on this machine alone; nobody claims it", v.Name)
		}
	}
}

// replicas wants a workload with several pods to keep one. One that has a single pod is made to be moved.
func (g *gates) replicas() {
	for _, w := range g.Workloads {
		switch {
		case w.Ending < w.Ready || w.Ending <= 0:
		case w.Ready <= 1:
			g.find(GateReplica, Warn, Key{}, "%s has one pod that is ready, and it runs there: it is away until it runs elsewhere", w.Name)
		default:
			g.find(GateReplica, Block, Key{}, "%s has %d pods that are ready, and all of them run there", w.Name, w.Ready)
		}
	}
}
