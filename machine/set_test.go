// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// TestSetReservesFirst: names are stored before machines are created, the same ones again after a kill, and none twice. R-MA-09.
func TestSetReservesFirst(t *testing.T) {
	s := poolSet(3)
	d := machine.DecideSet(setView(s))
	if !d.Store || len(d.Status.Reserved) != 3 || !slices.Equal(d.Create, d.Status.Reserved) || d.Size != 3 {
		t.Fatalf("first decision: %+v", d)
	}
	s.Status = d.Status
	again := machine.DecideSet(setView(s))
	if again.Store || !slices.Equal(again.Create, d.Create) {
		t.Errorf("killed before any was created: store %v, create %v, want %v", again.Store, again.Create, d.Create)
	}
	one := member(s, d.Create[1].Name, notJoined)
	next := machine.DecideSet(setView(s, one))
	if want := []machine.Reservation{d.Create[0], d.Create[2]}; !slices.Equal(next.Create, want) || !next.Store || next.Status.Serial != d.Status.Serial {
		t.Errorf("killed after the second: %+v, want to create %v", next, want)
	}
	s.Status = next.Status
	s.Spec.Replicas = 4
	more := machine.DecideSet(setView(s, one))
	fresh := more.Create[len(more.Create)-1].Name
	if len(more.Create) != 3 || fresh == one.Name || slices.Contains(next.Create, machine.Reservation{Name: fresh}) {
		t.Errorf("a fourth: %v", more.Create)
	}
	s.Status = machine.DecideSet(setView(s, member(s, d.Create[0].Name), member(s, d.Create[1].Name), member(s, d.Create[2].Name))).Status
	s.Status.Reserved = nil
	for _, r := range machine.DecideSet(setView(s)).Create {
		if slices.Contains(d.Create, r) {
			t.Errorf("when all are gone, name %q is used again", r.Name)
		}
	}
}

// TestSetNeedsLive: nothing is made, deleted or reserved by what a cache says. R-MA-09.
func TestSetNeedsLive(t *testing.T) {
	s := poolSet(2)
	free := member(s, "free", func(m *machine.Machine) { m.Owner = machine.Owner{} })
	pending := poolSet(2)
	pending.Status.Reserved = reserved(2)
	for name, v := range map[string]machine.SetView{
		"create":  setView(s),
		"pending": setView(pending),
		"delete":  setView(s, member(s, "a"), member(s, "b"), member(s, "c")),
		"adopt":   setView(s, free),
	} {
		t.Run(name, func(t *testing.T) {
			if live := machine.DecideSet(v); live.NeedLive || len(live.Create)+len(live.Delete)+len(live.Adopt) == 0 {
				t.Fatalf("with a live view: %+v", live)
			}
			v.Live = false
			d := machine.DecideSet(v)
			if !d.NeedLive || len(d.Create)+len(d.Delete)+len(d.Adopt) != 0 || !slices.Equal(d.Status.Reserved, v.Set.Status.Reserved) {
				t.Errorf("with a cache: %+v", d)
			}
		})
	}
	v := setView(s, member(s, "a"), member(s, "b"))
	v.Live = false
	if d := machine.DecideSet(v); d.NeedLive || d.Status.Available != 2 {
		t.Errorf("nothing to do: %+v", d)
	}
}

// TestSetCeiling: what counts against the replicas. R-MA-09, R-MA-11.
func TestSetCeiling(t *testing.T) {
	drifted := func(m *machine.Machine) { m.Labels = map[string]string{"pool": "other"} }
	others := func(m *machine.Machine) { m.Owner = machine.Owner{UID: "other", Name: "other"} }
	s := poolSet(3)
	for _, c := range []struct {
		name     string
		machines []machine.Machine
		reserved int
		create   int
	}{
		{name: "none", create: 3},
		{name: "owned", machines: []machine.Machine{member(s, "a")}, create: 2},
		{name: "one whose labels drifted", machines: []machine.Machine{member(s, "a", drifted)}, create: 2},
		{name: "one that is being deleted", machines: []machine.Machine{member(s, "a", deleted)}, create: 2},
		{name: "one that is selected and belongs to another", machines: []machine.Machine{member(s, "a", others)}, create: 2},
		{name: "one of another", machines: []machine.Machine{member(s, "a", drifted, others)}, create: 3},
		{name: "one of another namespace", machines: []machine.Machine{member(s, "a", func(m *machine.Machine) { m.Namespace = "x" })}, create: 3},
		{name: "reserved", machines: []machine.Machine{member(s, "a")}, reserved: 1, create: 2},
		{name: "all reserved", machines: []machine.Machine{member(s, "a"), member(s, "b", drifted), member(s, "c", deleted)}, reserved: 0, create: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s
			s.Status.Reserved = reserved(c.reserved)
			d := machine.DecideSet(setView(s, c.machines...))
			if len(d.Create) != c.create || len(d.Delete) != 0 {
				t.Errorf("create %v, delete %v, want %d created", d.Create, names(d.Delete), c.create)
			}
		})
	}
}

// TestSetHoldsBack: what keeps a set from making machines, each with its reason. R-MA-10, R-MA-11, R-MA-28.
func TestSetHoldsBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*machine.SetView)
		create  int
		message string
	}{
		{"paused", func(v *machine.SetView) { v.Set.Spec.Paused = true }, 0, "paused"},
		{"deleted", func(v *machine.SetView) { v.Set.Deleted = noon }, 0, "being deleted"},
		{"no UID", func(v *machine.SetView) { v.Set.UID = "" }, 0, "no UID"},
		{"negative", func(v *machine.SetView) { v.Set.Spec.Replicas = -1 }, 0, "-1"},
		{"empty selector", func(v *machine.SetView) { v.Set.Spec.Selector = nil }, 0, "selector"},
		{"selector of others", func(v *machine.SetView) { v.Set.Spec.Selector = map[string]string{"pool": "b"} }, 0, "selector"},
		{"selector with expressions", func(v *machine.SetView) {
			v.Set.Spec.Selector, v.Matches = nil, func(l map[string]string) bool { return l["pool"] == "a" }
		}, 3, ""},
		{"restored", func(v *machine.SetView) { v.Restored = true }, 0, `is "set-uid"`},
		{"restored, and looked at", func(v *machine.SetView) {
			v.Restored, v.Set.Annotations = true, map[string]string{machine.AdoptedAnnotation: "set-uid"}
		}, 3, ""},
		{"an old one", func(v *machine.SetView) { v.Set.Annotations = map[string]string{machine.NoCreateAnnotation: ""} }, 0, ""},
		{"not so many at once", func(v *machine.SetView) { v.Set.Spec.MaxProvisioning = 2 }, 2, "1 machines to be created wait"},
		{"group that is full", func(v *machine.SetView) {
			v.Refused = &machine.Failure{Reason: string(provider.Stockout), Message: "no capacity"}
		}, 0, "no capacity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := setView(poolSet(3))
			c.change(&v)
			d := machine.DecideSet(v)
			if len(d.Create) != c.create || !strings.Contains(d.Status.Message, c.message) || c.message == "" && d.Status.Message != "" {
				t.Errorf("create %d, message %q; want %d, %q", len(d.Create), d.Status.Message, c.create, c.message)
			}
			if d.Status.Observed != v.Set.Generation {
				t.Errorf("observed %d, want %d", d.Status.Observed, v.Set.Generation)
			}
		})
	}
}

// TestSetProvisioning: machines that have not joined bound how many more are made.
func TestSetProvisioning(t *testing.T) {
	s := poolSet(9)
	s.Spec.MaxProvisioning = 3
	s.Status.Reserved = reserved(1)
	d := machine.DecideSet(setView(s, member(s, "a"), member(s, "b", notJoined), member(s, "c", deleted, notJoined)))
	if len(d.Create) != 2 { // one that is reserved and one more, beside one that joins
		t.Errorf("create %v, want 2", d.Create)
	}
}

// TestSetGivesUpReservations: what was not made yet is not made when it isn't wanted any more.
func TestSetGivesUpReservations(t *testing.T) {
	s := poolSet(2)
	s.Status.Reserved = reserved(3)
	d := machine.DecideSet(setView(s, member(s, "a")))
	if len(d.Create) != 1 || len(d.Status.Reserved) != 1 || !d.Store {
		t.Errorf("shrunk to 2: %+v", d)
	}
	s.Annotations = map[string]string{machine.NoCreateAnnotation: "old"}
	if d := machine.DecideSet(setView(s, member(s, "a"))); len(d.Create)+len(d.Status.Reserved) != 0 || !d.Store {
		t.Errorf("an old one: %+v", d)
	}
	s = poolSet(0)
	s.Status.Reserved = reserved(3)
	if d := machine.DecideSet(setView(s, member(s, "a"))); len(d.Status.Reserved) != 0 || len(d.Delete) != 1 {
		t.Errorf("shrunk to 0: %+v", d)
	}
}

// TestSetAdopts: what is selected and has no owner is taken over before anything else is done; a restored set does it when somebody says so.
func TestSetAdopts(t *testing.T) {
	s := poolSet(1)
	free := member(s, "free", func(m *machine.Machine) { m.Owner = machine.Owner{} })
	lost := member(s, "lost", func(m *machine.Machine) { m.Owner.UID = "of the cluster before" })
	dying := member(s, "dying", deleted, func(m *machine.Machine) { m.Owner = machine.Owner{} })
	v := setView(s, free, dying, member(s, "a"))
	if d := machine.DecideSet(v); !slices.Equal(names(d.Adopt), []string{"free"}) || len(d.Delete) != 0 || d.Adopt[0].Version != "v-free" {
		t.Errorf("with one that is free: %+v", d)
	}
	v = setView(s, lost, free)
	if d := machine.DecideSet(v); len(d.Adopt)+len(d.Create)+len(d.Delete) != 0 || !strings.Contains(d.Status.Message, "1 machines that had another set") {
		t.Errorf("restored: %+v", d)
	}
	v.Set.Annotations = map[string]string{machine.AdoptedAnnotation: s.UID}
	if d := machine.DecideSet(v); !slices.Equal(names(d.Adopt), []string{"free", "lost"}) || len(d.Create)+len(d.Delete) != 0 {
		t.Errorf("restored, and looked at: %+v", d)
	}
}

// TestSetStatus: what is counted, and that a failure of machines is shown on the set. R-MA-11.
func TestSetStatus(t *testing.T) {
	s := poolSet(4)
	s.Spec.MinReady = 30 * time.Minute
	short := func(at time.Duration, message string) func(*machine.Machine) {
		return func(m *machine.Machine) {
			notJoined(m)
			m.Failure = &machine.Failure{Reason: string(provider.Stockout), Message: message, Since: noon.Add(-at)}
		}
	}
	v := setView(s, member(s, "a"), member(s, "b"), member(s, "c", short(time.Minute, "later")), member(s, "d", short(time.Hour, "no more of that size")),
		member(s, "e", deleted))
	v.Nodes[key("b")] = conditions("Ready", "True", noon.Add(-20*time.Minute))
	v.Machines[1].Labels = nil
	d := machine.DecideSet(v)
	got := [4]int{d.Status.Replicas, d.Status.Labeled, d.Status.Ready, d.Status.Available}
	if want := [4]int{5, 4, 3, 1}; got != want {
		t.Errorf("replicas, labeled, ready, available: %v, want %v", got, want)
	}
	if d.After != 10*time.Minute {
		t.Errorf("looks again after %s, want 10m", d.After)
	}
	f := d.Status.Failure
	if f == nil || f.Reason != "Stockout" || f.Message != "2 of 5 machines; d: no more of that size" || !f.Since.Equal(noon.Add(-time.Hour)) {
		t.Errorf("failure: %+v", f)
	}
	v.Set.Status = d.Status
	if machine.DecideSet(v).Store {
		t.Error("what was stored is stored again")
	}
	v.Nodes = nil
	if d := machine.DecideSet(v); d.Status.Ready+d.Status.Available != 0 || len(d.Delete) != 0 {
		t.Errorf("without Nodes: %+v", d.Status)
	}
}

// TestSetStandings: what disturbs a machine takes it from those that are available.
func TestSetStandings(t *testing.T) {
	for name, change := range map[string]func(*machine.Machine){
		"release":      func(m *machine.Machine) { m.Release = &machine.Release{Replace: true} },
		"update slot":  func(m *machine.Machine) { m.Update = &machine.Update{Slot: true} },
		"drained":      func(m *machine.Machine) { m.Update = &machine.Update{Drained: true} },
		"update sent":  func(m *machine.Machine) { m.Update = &machine.Update{Sent: true} },
		"starting":     func(m *machine.Machine) { m.Step.Name = machine.StepStarting },
		"decommission": decommissioned,
		"deleted":      deleted,
	} {
		s := poolSet(1)
		if d := machine.DecideSet(setView(s, member(s, "a", change))); d.Status.Available != 0 || d.Status.Ready != 1 {
			t.Errorf("%s: %+v, want it ready and not available", name, d.Status)
		}
	}
	s := poolSet(1)
	planned := member(s, "a", func(m *machine.Machine) { m.Update, m.Phase = &machine.Update{}, machine.PhaseUpdating })
	if d := machine.DecideSet(setView(s, planned)); d.Status.Available != 1 {
		t.Errorf("planned: %+v, want it available until it is disturbed", d.Status)
	}
}

// TestSetMachineIsACopy: a machine shares nothing with its set, and has nothing that belongs to one machine alone.
func TestSetMachineIsACopy(t *testing.T) {
	s := poolSet(1)
	spec := &s.Spec.Template.Spec
	spec.ProviderID, spec.Adopt, spec.Decommission, spec.Paused = "x:///a", "token", true, true
	spec.Config, spec.Versions.Other = []byte("{}"), map[string]string{"kernel": "6"}
	spec.Desired.Node.Labels, spec.Desired.Node.Taints = map[string]string{"a": "b"}, []provider.Taint{{Key: "k"}}
	spec.Deletion.Hooks = []machine.Hook{{Name: "h"}}
	m := s.Machine(machine.Reservation{Name: "m", Heir: machine.Heir{Of: "old", Lineage: 2}})
	if m.Spec.ProviderID+m.Spec.Adopt != "" || m.Spec.Decommission || m.Spec.Paused || m.Owner != (machine.Owner{UID: "set-uid", Name: "pool"}) {
		t.Errorf("machine: %+v", m)
	}
	if m.Annotations[machine.LineageAnnotation] != "2" || m.Annotations[machine.ReplacementOfAnnotation] != "old" {
		t.Errorf("annotations: %v", m.Annotations)
	}
	before := fmt.Sprint(s.Spec)
	m.Labels["pool"], m.Spec.Config[0], m.Spec.Roles[0], m.Spec.Versions.Other["kernel"] = "z", 'z', "z", "z"
	m.Spec.Desired.Node.Labels["a"], m.Spec.Desired.Node.Taints[0].Key, m.Spec.Deletion.Hooks[0].Name = "z", "z", "z"
	if after := fmt.Sprint(s.Spec); after != before {
		t.Errorf("the set has changed with its machine:\n%s\n%s", before, after)
	}
}

// TestSetNames: names are short enough for a label, and differ for every set and every number.
func TestSetNames(t *testing.T) {
	seen := map[string]bool{}
	for _, uid := range []string{"a", "b"} {
		s := poolSet(2000)
		s.UID, s.Name = uid, strings.Repeat("long-", 12)
		for _, r := range machine.DecideSet(setView(s)).Create {
			if len(r.Name) > 63 || seen[r.Name] || !strings.HasPrefix(r.Name, "long-long") {
				t.Fatalf("name %q: %d bytes, seen before: %v", r.Name, len(r.Name), seen[r.Name])
			}
			seen[r.Name] = true
		}
	}
	s := poolSet(1)
	taken := machine.DecideSet(setView(s)).Create[0].Name
	stranger := member(s, taken, func(m *machine.Machine) { m.Owner, m.Labels = machine.Owner{UID: "x", Name: "x"}, nil })
	if d := machine.DecideSet(setView(s, stranger)); len(d.Create) != 1 || d.Create[0].Name == taken {
		t.Errorf("create %v beside a stranger of the name %q", d.Create, taken)
	}
}

// TestSetDecidesPurely: a decision changes nothing of what it looks at.
func TestSetDecidesPurely(t *testing.T) {
	build := func() machine.SetView {
		s := poolSet(4)
		s.Status.Reserved, s.Status.Heirs = reserved(2), []machine.Heir{{Of: "x", Lineage: 1}}
		return setView(s, member(s, "a"), member(s, "reserved-0", notJoined), member(s, "b", annotated(machine.GivenUpAnnotation, "3")))
	}
	v, same := build(), build()
	first := machine.DecideSet(v)
	if !reflect.DeepEqual(v, same) {
		t.Errorf("the view has changed:\n%+v\n%+v", v, same)
	}
	if second := machine.DecideSet(v); !reflect.DeepEqual(first, second) {
		t.Errorf("two decisions:\n%+v\n%+v", first, second)
	}
}
