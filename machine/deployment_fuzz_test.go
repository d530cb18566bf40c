// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// zoo makes machines in all sorts of states, one a byte, of one of the sets or of nobody.
func zoo(data []byte, sets ...machine.Set) (machines []machine.Machine, nodes map[machine.Key]machine.NodeHealth) {
	nodes = map[machine.Key]machine.NodeHealth{}
	for i, b := range data[:min(len(data), 30)] {
		m := member(sets[i%len(sets)], fmt.Sprint("m", i))
		m.Labels = maps.Clone(m.Labels)
		nodes[m.Key] = conditions("Ready", []string{"True", "True", "False", "Unknown"}[b%4], noon.Add(-time.Duration(b)*time.Minute))
		for bit, change := range []func(){
			4: func() { notJoined(&m) },
			5: func() { m.Deleted = noon },
			6: func() { m.Labels["pool"] = "elsewhere" },
			7: func() { delete(nodes, m.Key) },
		} {
			if change != nil && b>>bit&1 == 1 {
				change()
			}
		}
		switch b % 11 {
		case 0:
			m.Owner = machine.Owner{}
		case 1:
			m.Annotations = map[string]string{machine.DeleteAnnotation: "", machine.GivenUpAnnotation: "1"}
		case 2:
			m.Spec.Roles = []string{"control-plane"}
		case 3:
			m.Token, m.Digest = "t", "another"
		case 4:
			m.Owner.UID = "somebody"
			m.Owner.Name = "somebody"
		}
		machines = append(machines, m)
	}
	return machines, nodes
}

// FuzzDecideSet: there are never more machines than replicas by what is created, never fewer by what is deleted, and nothing that is kept goes.
func FuzzDecideSet(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 77, 16, 33}, 4, 2, 0)
	f.Add([]byte{}, 3, 0, 1)
	f.Add([]byte{64, 65, 66, 129, 5, 5, 5, 5}, 2, 3, 0)
	f.Fuzz(func(t *testing.T, data []byte, replicas, pending, most int) {
		s := poolSet(replicas % 40)
		s.Spec.MaxProvisioning = most % 5
		s.Status.Reserved = reserved(min(max(pending, 0), 9))
		machines, nodes := zoo(data, s)
		v := machine.SetView{Set: s, Now: noon, Machines: machines, Live: true, Nodes: nodes}
		d := machine.DecideSet(v)
		checkSetDecision(t, v, d)
		s.Status = d.Status
		v.Set = s
		again := machine.DecideSet(v)
		if again.Store || !slices.Equal(again.Create, d.Create) || !reflect.DeepEqual(again.Delete, d.Delete) {
			t.Errorf("decided again: %+v, %+v", d, again)
		}
	})
}

func checkSetDecision(t *testing.T, v machine.SetView, d machine.SetDecision) {
	s, machines := v.Set, v.Machines
	counted, alive := len(d.Status.Reserved), 0
	for _, m := range machines {
		if m.Owner.UID == s.UID || m.Labels["pool"] == "a" {
			counted++
		}
		if m.Owner.UID == s.UID && m.Deleted.IsZero() {
			alive++
		}
	}
	if len(d.Create) > 0 && counted > s.Spec.Replicas {
		t.Errorf("%d machines with those that are created, %d wanted", counted, s.Spec.Replicas)
	}
	if len(d.Delete) > 0 && (alive-len(d.Delete) < s.Spec.Replicas || len(d.Create) > 0) {
		t.Errorf("%d of %d machines are deleted, %d created, %d wanted", len(d.Delete), alive, len(d.Create), s.Spec.Replicas)
	}
	for _, c := range d.Delete {
		i := slices.IndexFunc(machines, func(m machine.Machine) bool { return m.Key == c.Key })
		if m := machines[i]; !m.Deleted.IsZero() || m.Owner.UID != s.UID || slices.Contains(m.Spec.Roles, "control-plane") {
			t.Errorf("%+v is deleted", m)
		}
	}
}

// FuzzDecideDeployment: whatever there is, the sets can't come to have more than they may, what works is not taken below the floor, and what was
// stored decides the same again.
func FuzzDecideDeployment(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 77, 16, 33}, 3, 1, 0, uint8(0), 2, 1)
	f.Add([]byte{0, 0, 0, 4, 4, 4}, 3, 1, 1, uint8(6), 3, 2)
	f.Add([]byte{8, 8, 8}, 2, 0, 100, uint8(9), 3, 0)
	f.Fuzz(func(t *testing.T, data []byte, replicas, surge, missing int, flags uint8, oldTarget, newTarget int) {
		surge, missing = max(surge, 0)%50, max(missing, 0)%101
		d := pool(max(replicas, 0) % 30)
		d.Spec.Strategy = machine.Strategy{
			Type:     []machine.StrategyType{machine.RollingUpdate, machine.InPlace, machine.OnDelete, ""}[flags%4],
			MaxSurge: machine.Amount{Value: surge}, MaxUnavailable: machine.Amount{Value: missing, Percent: true},
		}
		old, _ := setOf(d, "v1.36.0", 0)
		next, _ := setOf(d, "v1.36.1", 0)
		old.Spec.Replicas, next.Spec.Replicas = max(oldTarget, 0)%40, max(newTarget, 0)%40
		if flags&4 != 0 {
			held(&old)
		}
		if flags&8 != 0 {
			held(&next)
		}
		machines, nodes := zoo(data, old, next)
		v := machine.DeploymentView{Deployment: d, Now: noon, Sets: []machine.Set{old, next}, Machines: machines, Live: true, Nodes: nodes}
		v.Plans = map[machine.Key]provider.Plan{}
		for i, m := range machines {
			if m.Owner == (machine.Owner{}) { // one that a set would adopt is there already
				machines[i].Labels = nil
			}
			v.Plans[m.Key] = provider.Plan{Method: []provider.Method{provider.InPlace, provider.Replace, provider.Nothing}[i%3]}
		}
		got := machine.DecideDeployment(v)
		for _, u := range got.Update {
			checkSetUpdate(t, v, u)
		}
		v.Deployment.Status = got.Status
		if again := machine.DecideDeployment(v); again.Store || !reflect.DeepEqual(again.Update, got.Update) || !reflect.DeepEqual(again.Moves, got.Moves) {
			t.Errorf("decided again:\n%+v\n%+v", got, again)
		}
	})
}

func owned(machines []machine.Machine, s machine.Set) int {
	n := 0
	for _, m := range machines {
		if m.Owner.UID == s.UID {
			n++
		}
	}
	return n
}

// checkSetUpdate takes the old set first and the new one second.
func checkSetUpdate(t *testing.T, v machine.DeploymentView, u machine.SetUpdate) {
	old, next, d := v.Sets[0], v.Sets[1], v.Deployment
	if u.Set.Spec.Replicas < 0 || u.Set.Version == "" || u.Reason == "" {
		t.Errorf("update: %+v", u)
	}
	if _, holds := u.Set.Annotations[machine.NoCreateAnnotation]; u.Set.UID != next.UID || holds || u.Set.Spec.Replicas <= owned(v.Machines, next) {
		return
	}
	_, oldHeld := old.Annotations[machine.NoCreateAnnotation]
	if !oldHeld && u.Set.Spec.Replicas > next.Spec.Replicas {
		t.Error("the new set grows before the old one is held")
	}
	most := d.Spec.Replicas + max(d.Spec.Strategy.MaxSurge.Value, 1)
	if total := owned(v.Machines, old) + u.Set.Spec.Replicas; oldHeld && total > most {
		t.Errorf("%d machines can come to be, %d may be", total, most)
	}
}
