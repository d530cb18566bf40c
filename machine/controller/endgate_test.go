// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// A site is what an EndGate reads.
type site struct {
	machines []machine.Machine
	notReady string
	volumes  []machine.LocalVolume
	memberOf func(machine.Machine) bool
	err      map[string]error
}

func (s *site) List(context.Context) ([]machine.Machine, error) { return s.machines, s.err["machines"] }

func (s *site) Of(_ context.Context, token string) ([]machine.Node, error) {
	return []machine.Node{{Ready: token != s.notReady}}, s.err["nodes"]
}

func (s *site) On(_ context.Context, machines []machine.Machine) ([]machine.LocalVolume, []machine.Workload, error) {
	if len(machines) != 1 {
		return nil, nil, errors.New("want the one machine that ends")
	}
	return s.volumes, nil, s.err["cargo"]
}

// siteMembers is a member on each machine of the control plane.
type siteMembers struct{ *site }

func (s siteMembers) List(_ context.Context, machines []machine.Machine) (all []machine.Member, err error) {
	for _, m := range machines {
		if s.memberOf(m) {
			all = append(all, machine.Member{Name: m.Name, Machine: m.Key, Healthy: true})
		}
	}
	return all, s.err["members"]
}

func newSite() *site {
	s := &site{memberOf: func(m machine.Machine) bool { return machine.Protected(m.Spec.Roles) }, err: map[string]error{}}
	for _, name := range []string{"c0", "c1", "c2", "w0", "w1"} {
		m := worker(name)
		if name[0] == 'c' {
			m = master(name)
		}
		m.Phase, m.Token, m.Node = machine.PhaseRunning, name, &machine.NodeRef{Name: name, UID: name}
		s.machines = append(s.machines, m)
	}
	return s
}

func (s *site) find(name string) *machine.Machine {
	for i := range s.machines {
		if s.machines[i].Name == name {
			return &s.machines[i]
		}
	}
	return nil
}

// R-MA-25: the gate of a controller sees the fleet as it is, and refuses what it can't see.
func TestEndGate(t *testing.T) {
	enter := func(s *site) { s.find("c0").Spec.Decommission = true }
	away := errors.New("away")
	for _, c := range []struct {
		name, ends string
		change     func(s *site, g *controller.EndGate)
		blocked    string
		err        string
	}{
		{name: "a worker", ends: "w0"},
		{name: "a member of three", ends: "c0", change: func(s *site, _ *controller.EndGate) { enter(s) }},
		{name: "one that was not entered", ends: "c0", blocked: "set spec.decommission first"},
		{name: "a replacement need not be entered", ends: "c0", change: func(s *site, _ *controller.EndGate) { s.find("c0").Release = &machine.Release{Replace: true} }},
		{name: "the other worker is not ready", ends: "w0", change: func(s *site, g *controller.EndGate) {
			s.notReady, g.As = "w1", map[machine.Gate]machine.Severity{machine.GateRole: machine.Block}
		}, blocked: `with role "worker", none is running`},
		{name: "the end of the other worker has begun", ends: "w0", change: func(s *site, _ *controller.EndGate) {
			s.find("w1").Release = &machine.Release{Replace: true, Begun: true, Since: time.Unix(1e9, 0)}
		}, blocked: `last with role "worker"`},
		{name: "the last worker is replaced", ends: "w0", change: func(s *site, _ *controller.EndGate) {
			s.machines = s.machines[:4]
			s.find("w0").Release = &machine.Release{Replace: true}
		}},
		{name: "data on it alone", ends: "w0", change: func(s *site, _ *controller.EndGate) {
			s.volumes = []machine.LocalVolume{{Name: "v", Machine: s.find("w0").Key, Claim: "shop/db"}}
		}, blocked: "of shop/db is on this machine alone"},
		{name: "without a Node nothing is on it", ends: "w0", change: func(s *site, _ *controller.EndGate) { s.find("w0").Node, s.err["cargo"] = nil, away }},
		{name: "members don't answer", ends: "c0", change: func(s *site, _ *controller.EndGate) { enter(s); s.err["members"] = away }, blocked: "could not be asked (gate: list members: away)"},
		{name: "nobody knows members", ends: "c0", change: func(s *site, g *controller.EndGate) { enter(s); g.Members = nil }, blocked: "nobody who knows the members"},
		{name: "members don't answer, of a worker", ends: "w0", change: func(s *site, _ *controller.EndGate) { s.err["members"] = away }},
		{name: "machines can't be listed", ends: "w0", change: func(s *site, _ *controller.EndGate) { s.err["machines"] = away }, err: "list machines: away"},
		{name: "what is on it can't be asked", ends: "w0", change: func(s *site, _ *controller.EndGate) { s.err["cargo"] = away }, err: "what is on the machines: away"},
		{name: "no machines", ends: "w0", change: func(_ *site, g *controller.EndGate) { g.Machines = nil }, err: "Machines is required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite()
			g := controller.EndGate{Fleet: controller.Fleet{Machines: s, Nodes: s, Members: siteMembers{s}, Cargo: s}}
			m := *s.find(c.ends)
			if c.change != nil {
				c.change(s, &g)
				m = *s.find(c.ends)
			}
			blocked, err := g.Check(t.Context(), m)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if (blocked == "") != (c.blocked == "") || !strings.Contains(blocked, c.blocked) {
				t.Errorf("blocked by %q, want %q", blocked, c.blocked)
			}
		})
	}
}
