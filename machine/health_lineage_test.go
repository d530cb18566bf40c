// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// TestBadImage: machines that never join are given up a few times in a row, each knows its lineage, and then it ends; a template that works ends it too.
func TestBadImage(t *testing.T) {
	for _, good := range []bool{false, true} {
		c := check(func(s *machine.HealthSpec) {
			s.Ladder, s.MaxLineage = []machine.Rung{{Kind: machine.RemedyReplace}}, 2
		})
		s, machines, made := poolSet(3), map[string]machine.Machine{}, 0
		for pass := range 400 {
			now := noon.Add(time.Duration(pass) * time.Minute)
			d := machine.DecideSet(machine.SetView{Set: s, Now: now, Machines: values(machines), Live: true})
			s.Status = d.Status
			for _, r := range d.Create {
				m := s.Machine(r)
				m.UID, m.Created = r.Name, now
				m.Step = machine.Step{Name: machine.StepJoining, Since: now}
				if good && r.Heir.Lineage == 1 {
					m.Node, m.Step.Name = &machine.NodeRef{Name: r.Name}, machine.StepReady
				}
				machines[r.Name], made = m, made+1
			}
			v := machine.HealthView{Check: c, Now: now, Machines: values(machines), Nodes: allReady(values(machines)), NodesKnown: true, Budget: 1}
			h := machine.DecideHealth(v)
			c.Status = h.Status
			maps.DeleteFunc(machines, func(_ string, m machine.Machine) bool { return !m.Deleted.IsZero() })
			for _, r := range h.Remedies {
				m := machines[r.Name]
				m.Annotations, m.Deleted = r.Annotations, now
				machines[r.Name] = m
			}
		}
		want := 3 * 3 // each of three machines, and two heirs
		if good {
			want = 3 * 2
		}
		if made != want || len(machines) != 3 {
			t.Errorf("good %v: %d machines were made, want %d; %d are left", good, made, want, len(machines))
		}
		lineages := map[string]int{}
		for _, m := range machines {
			lineages[m.Annotations[machine.LineageAnnotation]]++
		}
		if wantLineage := map[bool]string{false: "2", true: "1"}[good]; lineages[wantLineage] != 3 {
			t.Errorf("good %v: lineages %v, want all %s", good, lineages, wantLineage)
		}
	}
}

// FuzzDecideHealth: whatever is unhealthy, there are never more disruptions than the budget has, none is begun beyond the limit, and what is stored
// decides the same again.
func FuzzDecideHealth(f *testing.F) {
	f.Add([]byte{3, 200, 1, 0, 7, 9}, 2, 50)
	f.Add([]byte{255, 254, 0, 17, 34, 51, 68, 85, 102, 119}, 1, 100)
	f.Fuzz(func(t *testing.T, data []byte, budget, share int) {
		s := poolSet(len(data))
		c := check(func(h *machine.HealthSpec) { h.MaxUnhealthy = machine.Amount{Value: share, Percent: true} })
		var all []machine.Machine
		nodes := map[machine.Key]machine.NodeHealth{}
		for i, b := range data[:min(len(data), 40)] {
			m := member(s, fmt.Sprint("m", i))
			status := []string{"True", "False", "Unknown", ""}[b%4]
			nodes[m.Key] = conditions("Ready", status, noon.Add(-time.Duration(b)*time.Minute/8))
			if b&16 != 0 {
				notJoined(&m)
			}
			if b&32 != 0 {
				c.Status.Attempts = append(c.Status.Attempts, machine.Attempt{Key: m.Key, UID: m.UID, Rung: int(b % 5), Try: int(b % 3), Since: noon.Add(-time.Duration(b) * time.Second)})
			}
			all = append(all, m)
		}
		v := machine.HealthView{Check: c, Now: noon, Machines: all, Nodes: nodes, NodesKnown: true, Budget: budget, CanReboot: len(data)%2 == 0}
		d := machine.DecideHealth(v)
		begun := 0
		for _, a := range d.Status.Attempts {
			if a.Since.Equal(noon) && (a.Kind == machine.RemedyReboot || a.Kind == machine.RemedyReplace) && !slices.Contains(c.Status.Attempts, a) {
				begun++
			}
		}
		if begun > max(budget, 0) {
			t.Errorf("%d disruptions begun with a budget of %d", begun, budget)
		}
		if d.Status.Message != "" && len(d.Remedies) > 0 {
			t.Errorf("%s: %v", d.Status.Message, d.Remedies)
		}
		v.Check.Status, v.Budget = d.Status, 0
		if again := machine.DecideHealth(v); again.Store {
			t.Errorf("stored again:\n%+v\n%+v", d.Status, again.Status)
		}
	})
}
