// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// R-MA-28: machines that are replaced by something that never starts go one by one, as the budget says: the slot is kept until the new instance works.
func TestReplacementKeepsItsSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.store.Put(worker("a")), w.store.Put(worker("b"))
		w.running(a.Key)
		w.running(b.Key)
		end := w.cloud.Inject(machinetest.SlowStart)
		for _, key := range []machine.Key{a.Key, b.Key} {
			w.store.Edit(key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a","size":"l"}`) })
		}
		for range 100 {
			w.pass(a.Key)
			w.pass(b.Key)
			<-time.After(30 * time.Second)
		}
		if at, other := w.live(a.Key), w.live(b.Key); at.Incarnation != 2 || other.Incarnation != 1 || other.Phase == machine.PhaseFailed {
			t.Errorf("the first has incarnation %d, the second %d in phase %s", at.Incarnation, other.Incarnation, other.Phase)
		}
		end()
		w.running(a.Key)
		if at, _ := w.running(b.Key); at.Incarnation != 2 || len(w.budget.held) != 0 {
			t.Errorf("the second has incarnation %d, slots %v", at.Incarnation, w.budget.held)
		}
	})
}

// R-MA-24: a machine that was decommissioned stays so, for as long as it is wanted: nothing is asked of anybody, and its status is not written again. Its disks go
// when their time is over.
func TestRetiredStaysRetired(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Deletion.Disks, m.Spec.Deletion.RetainFor = provider.Retain, 48*time.Hour
		w.store.Put(m)
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
		w.until(m.Key, "retired", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseRetired })
		for range 5 {
			w.pass(m.Key)
			<-time.After(time.Minute)
		}
		before := len(w.trace)
		for range 24 {
			w.pass(m.Key)
			<-time.After(time.Hour)
		}
		if at := w.live(m.Key); at.Phase != machine.PhaseRetired || at.Incarnation != 1 || len(at.Retained) != 1 || len(w.trace) != before {
			t.Errorf("R-MA-24: after a day it is %s, incarnation %d, retained %+v; calls %v", at.Phase, at.Incarnation, at.Retained, w.trace[before:])
		}
		w.until(m.Key, "without disks", func(m machine.Machine, _ bool) bool { return len(m.Retained) == 0 })
		if left := w.cloud.Instances(); len(left) != 0 || w.live(m.Key).Phase != machine.PhaseRetired {
			t.Errorf("the provider still has %+v", left)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-12 and R-MA-02: a machine that was moved, and has lost its status, is deleted before anybody has looked at it: its instance goes too.
func TestMovedAndDeletedAtOnce(t *testing.T) {
	in(t, func(_ *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		first, _ := w.running(m.Key)
		moved := &controllertest.Store{Hook: w.hook}
		again := worker("a")
		again.UID, again.Spec.ProviderID, again.Finalizer = "another", first.Spec.ProviderID, true
		moved.Put(again)
		moved.Delete(again.Key)
		w.store, w.options.Machines = moved, moved
		w.start()
		w.gone(again.Key)
		w.clean()
	})
}

// Disks that are not there can't be adopted: the machine says so and waits, and no other instance is made in their place.
func TestAdoptOfNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Adopt = provider.Token(clusterID, "never", 1)
		w.store.Put(m)
		begun := len(w.trace)
		for range 5 {
			<-time.After(max(w.pass(m.Key), time.Second))
		}
		if at := w.live(m.Key); at.Failure == nil || at.Failure.Reason != string(provider.NotFound) || len(w.cloud.Instances()) != 0 {
			t.Errorf("failure %+v, instances %v", at.Failure, w.cloud.Instances())
		}
		if n := len(w.trace) - begun; n > 20 {
			t.Errorf("%d calls in five passes: %v", n, w.trace[begun:])
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-24: the disks of a machine whose object is gone come back under another one that names their token.
func TestUndelete(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Deletion.Disks = provider.Retain
		w.store.Put(m)
		first, _ := w.running(m.Key)
		w.store.Delete(m.Key)
		w.gone(m.Key)
		again := worker("b")
		again.Spec.Adopt = first.Token
		w.store.Put(again)
		second, _ := w.running(again.Key)
		if second.Instance.Disks[0].ID != first.Instance.Disks[0].ID {
			t.Errorf("R-MA-24: the disks are %v and were %v", second.Instance.Disks, first.Instance.Disks)
		}
		w.store.Delete(again.Key)
		w.gone(again.Key)
		w.clean()
	})
}
