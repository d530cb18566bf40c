// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belayproject/belay/machine"
)

// A MemberList knows the members of the cluster's own store, as etcd.
type MemberList interface {
	// List returns them as they are now, each with that of the machines on which it runs.
	List(ctx context.Context, machines []machine.Machine) ([]machine.Member, error)
}

// Cargo knows what is on machines and would be lost with them.
type Cargo interface {
	// On returns the volumes that are on these machines alone, and the workloads that have pods on them.
	On(ctx context.Context, machines []machine.Machine) ([]machine.LocalVolume, []machine.Workload, error)
}

// A Fleet is read for [machine.CheckEnd]. Machines is required; what is not there, or doesn't answer, speaks against an end wherever it matters.
type Fleet struct {
	// Machines lists all of the cluster.
	Machines interface {
		List(ctx context.Context) ([]machine.Machine, error)
	}
	// Nodes are asked whether the machines that would remain are ready. Without them the machines' own status is believed.
	Nodes interface {
		Of(ctx context.Context, token string) ([]machine.Node, error)
	}
	// Members are asked where a machine that is to end may run one. Without them no such machine may end.
	Members MemberList
	// Cargo is asked for machines that have a Node. Without it neither local data nor replicas are looked at.
	Cargo Cargo
}

// View returns what speaks for and against the end of these machines, all together. Members that can't be asked are not known in it; whatever else can't
// be asked is the error. why says which members could not be asked.
func (f Fleet) View(ctx context.Context, ending ...machine.Key) (v machine.GateView, why, err error) {
	if f.Machines == nil {
		return v, nil, errors.New("gate: Machines is required")
	}
	all, err := f.Machines.List(ctx)
	if err != nil {
		return v, nil, fmt.Errorf("gate: list machines: %w", err)
	}
	v = machine.GateView{Ending: ending, Machines: slices.Clone(all)}
	var ends, hosts []machine.Machine
	for i := range v.Machines {
		m := &v.Machines[i]
		if slices.Contains(ending, m.Key) {
			ends = append(ends, *m)
			if m.Node != nil {
				hosts = append(hosts, *m)
			}
			continue
		}
		f.standing(ctx, m)
	}
	why = f.members(ctx, &v, ends)
	if f.Cargo != nil && len(hosts) > 0 {
		if v.Volumes, v.Workloads, err = f.Cargo.On(ctx, hosts); err != nil {
			return v, why, fmt.Errorf("gate: what is on the machines: %w", err)
		}
	}
	return v, why, nil
}

// standing is whether a machine that would remain can be counted on: one whose own end has begun can't, nor one whose Node is not ready.
func (f Fleet) standing(ctx context.Context, m *machine.Machine) {
	if r := m.Release; r != nil && r.Begun && m.Deleted.IsZero() {
		m.Deleted = r.Since
	}
	if f.Nodes == nil || m.Phase != machine.PhaseRunning || m.Token == "" {
		return
	}
	nodes, err := f.Nodes.Of(ctx, m.Token)
	if err == nil && (len(nodes) != 1 || !nodes[0].Ready) {
		m.Phase = machine.PhaseFailed
	}
}

// members asks for them if one of the machines may run one.
func (f Fleet) members(ctx context.Context, v *machine.GateView, ends []machine.Machine) (why error) {
	if !slices.ContainsFunc(ends, func(m machine.Machine) bool { return machine.Protected(m.Spec.Roles) }) {
		return nil
	}
	if f.Members == nil {
		return errors.New("gate: there is nobody who knows the members")
	}
	members, err := f.Members.List(ctx, v.Machines)
	if err != nil {
		return fmt.Errorf("gate: list members: %w", err)
	}
	v.Members, v.MembersKnown = members, true
	return nil
}

var (
	_ Gate     = EndGate{}
	_ Unseeing = EndGate{}
)

// An EndGate is a [Gate] that asks [machine.CheckEnd].
type EndGate struct {
	Fleet
	// As is that of [machine.GateView].
	As map[machine.Gate]machine.Severity
}

// Check implements [Gate]. A machine that is only replaced need not have been entered for its end, and whoever is the last of its role comes back.
func (g EndGate) Check(ctx context.Context, m machine.Machine) (string, error) {
	v, why, err := g.View(ctx, m.Key)
	if err != nil {
		return "", err
	}
	v.As = g.severities(m)
	for i := range v.Machines {
		if v.Machines[i].Key == m.Key {
			v.Machines[i] = m // as it was read for this decision
		}
	}
	blocked := machine.Blocker(machine.CheckEnd(v))
	if blocked != "" && why != nil {
		blocked += fmt.Sprintf(" (%v)", why)
	}
	return blocked, nil
}

// CheckUnseen implements [Unseeing]: nobody looks for volumes and workloads on the machine. Members, roles and whatever else is known without its Node are checked.
func (g EndGate) CheckUnseen(ctx context.Context, m machine.Machine) (string, error) {
	g.Cargo = nil
	return g.Check(ctx, m)
}

func (g EndGate) severities(m machine.Machine) map[machine.Gate]machine.Severity {
	if m.Release == nil || !m.Release.Replace {
		return g.As
	}
	as := map[machine.Gate]machine.Severity{machine.GateDecommission: machine.Ignore, machine.GateRole: machine.Warn}
	for gate, s := range g.As {
		as[gate] = s
	}
	return as
}
