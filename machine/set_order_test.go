// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// TestScaleInOrder: which machine goes first. R-MA-11.
func TestScaleInOrder(t *testing.T) {
	s := poolSet(0)
	aged := func(d time.Duration) func(*machine.Machine) {
		return func(m *machine.Machine) { m.Created = noon.Add(-d) }
	}
	all := []machine.Machine{
		member(s, "young", aged(time.Minute)),
		member(s, "old", aged(9*time.Hour)),
		member(s, "twin-b", aged(time.Hour)),
		member(s, "twin-a", aged(time.Hour)),
		member(s, "dear", aged(2*time.Hour)),
		member(s, "updating", func(m *machine.Machine) { m.Update = &machine.Update{Slot: true} }),
		member(s, "failed", func(m *machine.Machine) { m.Phase = machine.PhaseFailed }),
		member(s, "not-ready"),
		member(s, "joining", notJoined),
		member(s, "moved", func(m *machine.Machine) { m.Token, m.Digest = "t", "another" }),
		member(s, "marked", annotated(machine.DeleteAnnotation, "")),
		member(s, "dying", deleted),
	}
	for _, c := range []struct {
		order machine.DeleteOrder
		want  string
	}{
		{machine.OldestFirst, "marked joining failed not-ready updating moved old twin-a twin-b young dear"},
		{machine.NewestFirst, "marked joining failed not-ready updating moved young twin-a twin-b old dear"},
		{machine.RandomFirst, "marked joining not-ready failed updating moved twin-a twin-b old young dear"},
		{"", "marked joining not-ready failed updating moved twin-a twin-b old young dear"},
	} {
		want := strings.Fields(c.want)
		for n := range len(want) + 1 {
			s := s
			s.Spec.Order, s.Spec.Replicas = c.order, len(want)-n
			v := setView(s, all...)
			v.Nodes[key("not-ready")] = conditions("Ready", "Unknown", noon)
			v.Cost = map[machine.Key]float64{key("dear"): 1, key("marked"): 9}
			got := names(machine.DecideSet(v).Delete)
			slices.Sort(got)
			first := slices.Sorted(slices.Values(want[:n]))
			if !slices.Equal(got, first) {
				t.Errorf("order %q, %d to go: %v, want %v", c.order, n, got, first)
			}
		}
	}
}

// TestScaleInKeeps: which machines are not chosen, each with its reason, and that others are instead. R-MA-26.
func TestScaleInKeeps(t *testing.T) {
	s := poolSet(1)
	for _, c := range []struct {
		name   string
		kept   machine.Machine
		reason string
	}{
		{"control plane", member(s, "a", roles("control-plane"), notJoined), "not entered by spec.decommission"},
		{"etcd", member(s, "a", roles("etcd", "worker"), notJoined), "not entered by spec.decommission"},
		{"marked, of the control plane", member(s, "a", roles("control-plane"), annotated(machine.DeleteAnnotation, "")), "not entered"},
		{"quarantine", member(s, "a", annotated(machine.QuarantineAnnotation, ""), notJoined), "kept by"},
		{"paused", member(s, "a", func(m *machine.Machine) { m.Spec.Paused = true }, notJoined), "paused"},
		{"unknown", member(s, "a", func(m *machine.Machine) { m.Created = noon.Add(-9 * time.Hour) }), "unknown health"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s
			s.Spec.Order = machine.OldestFirst
			v := setView(s, c.kept, member(s, "b"))
			if c.name == "unknown" {
				delete(v.Nodes, c.kept.Key)
			}
			d := machine.DecideSet(v)
			if !slices.Equal(names(d.Delete), []string{"b"}) || !slices.Equal(names(d.Kept), []string{"a"}) || !strings.Contains(d.Kept[0].Reason, c.reason) {
				t.Errorf("delete %v, kept %+v; want b deleted, and a kept because it is %s", d.Delete, d.Kept, c.reason)
			}
			if d.Delete[0].UID != "uid-b" || d.Delete[0].Version != "v-b" || d.Delete[0].Reason == "" {
				t.Errorf("choice %+v", d.Delete[0])
			}
		})
	}
}

// TestScaleInOfTheControlPlane takes two steps: entered, and then it is the first to go. R-MA-26.
func TestScaleInOfTheControlPlane(t *testing.T) {
	s := poolSet(2)
	cp := roles("control-plane", "etcd")
	v := setView(s, member(s, "a", cp), member(s, "b", cp), member(s, "c", cp))
	d := machine.DecideSet(v)
	if len(d.Delete) != 0 || len(d.Kept) != 3 || !strings.Contains(d.Status.Message, "not entered by spec.decommission") {
		t.Fatalf("none is entered: %+v", d)
	}
	v.Machines[1].Spec.Decommission = true
	if d = machine.DecideSet(v); !slices.Equal(names(d.Delete), []string{"b"}) || d.Delete[0].Reason != "entered for decommission" {
		t.Errorf("b is entered: %+v", d)
	}
	v.Set.Spec.Replicas = 3
	if d = machine.DecideSet(v); len(d.Delete) != 0 {
		t.Errorf("b is entered, and the set does not shrink: %+v", d)
	}
}

// TestScaleInBlind: without Nodes none is chosen, unless all are to go or somebody has marked it.
func TestScaleInBlind(t *testing.T) {
	s := poolSet(1)
	v := setView(s, member(s, "a"), member(s, "b"), member(s, "c"))
	v.Nodes = nil
	if d := machine.DecideSet(v); len(d.Delete) != 0 || d.Status.Message == "" {
		t.Errorf("blind: %+v", d)
	}
	v.Machines[2].Annotations = map[string]string{machine.DeleteAnnotation: "x"}
	if d := machine.DecideSet(v); !slices.Equal(names(d.Delete), []string{"c"}) {
		t.Errorf("blind, with one marked: %+v", d)
	}
	v.Set.Spec.Replicas = 0
	if d := machine.DecideSet(v); len(d.Delete) != 3 {
		t.Errorf("blind, all to go: %+v", d)
	}
}

// TestDeletingCountsFirst: machines that go already are part of what is to go. R-MA-11.
func TestDeletingCountsFirst(t *testing.T) {
	s := poolSet(3)
	v := setView(s, member(s, "a"), member(s, "b", deleted), member(s, "c"), member(s, "d"), member(s, "e"))
	if d := machine.DecideSet(v); len(d.Delete) != 1 || d.Delete[0].Name == "b" {
		t.Errorf("5 machines, one on its way, 3 wanted: %+v", d.Delete)
	}
	v.Set.Spec.Replicas = 4
	if d := machine.DecideSet(v); len(d.Delete)+len(d.Create) != 0 {
		t.Errorf("4 wanted: %+v", d)
	}
}

// TestHeirs: the machine that stands in for a broken one knows it.
func TestHeirs(t *testing.T) {
	s := poolSet(2)
	broken := member(s, "broken", annotated(machine.GivenUpAnnotation, "2"), deleted)
	d := machine.DecideSet(setView(s, member(s, "a"), broken))
	if want := []machine.Heir{{Of: "broken", Lineage: 2}}; !slices.Equal(d.Status.Heirs, want) || !d.Store || len(d.Create) != 0 {
		t.Fatalf("while it goes: %+v", d)
	}
	s.Status = d.Status
	if d = machine.DecideSet(setView(s, member(s, "a"), broken)); d.Store {
		t.Errorf("noted twice: %+v", d.Status.Heirs)
	}
	d = machine.DecideSet(setView(s, member(s, "a")))
	if len(d.Create) != 1 || d.Create[0].Heir != (machine.Heir{Of: "broken", Lineage: 2}) || len(d.Status.Heirs) != 0 {
		t.Fatalf("when it is gone: %+v", d)
	}
	s.Spec.Replicas = 1
	if d = machine.DecideSet(setView(s, member(s, "a"))); len(d.Status.Heirs) != 0 || !d.Store {
		t.Errorf("when the set has shrunk: %+v", d.Status)
	}
	nonsense := member(s, "b", annotated(machine.GivenUpAnnotation, "-1"))
	if d := machine.DecideSet(setView(poolSet(2), member(s, "a"), nonsense)); len(d.Status.Heirs) != 0 {
		t.Errorf("of nonsense: %+v", d.Status.Heirs)
	}
}

// TestUnreferenced: a machine that is missing from a directory is reported. R-MA-26.
func TestUnreferenced(t *testing.T) {
	s := poolSet(1)
	loose := func(m *machine.Machine) { m.Owner = machine.Owner{} }
	live := []machine.Machine{
		member(s, "z", loose), member(s, "kept", loose), member(s, "of-a-set"), member(s, "dying", loose, deleted), member(s, "a", loose, decommissioned),
	}
	got := machine.Unreferenced(live, []machine.Machine{{Key: key("kept")}, {Key: key("not there")}})
	if !slices.Equal(names(got), []string{"a", "z"}) {
		t.Fatalf("reported: %+v", got)
	}
	if !strings.Contains(got[0].Reason, "can be deleted") || !strings.Contains(got[1].Reason, "goes on") || got[1].UID != "uid-z" {
		t.Errorf("reasons: %+v", got)
	}
}
