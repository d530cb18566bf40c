// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// backups are a hook that takes some calls, and is told by whom and for which attempt.
type backups struct {
	w     *world
	err   error
	calls map[string]int
	// done are the attempts that were made, by machine and attempt.
	done []string
}

func (b *backups) Before(_ context.Context, m machine.Machine, attempt string) (bool, string, error) {
	of := m.UID + "/" + attempt
	if b.err != nil {
		return false, "", b.err
	}
	if slices.Contains(b.done, of) {
		return true, "", nil
	}
	if err := b.w.hook("Backup", false); err != nil {
		return false, "", err
	}
	if b.calls[of]++; b.calls[of] < 3 {
		return false, "the snapshot is being written", nil
	}
	if !slices.Contains(b.done, of) { // by somebody else, while this call was on its way
		b.done = append(b.done, of)
	}
	return true, "", b.w.hook("Backup", true)
}

func backedUp(w *world) *backups {
	b := &backups{w: w, calls: map[string]int{}}
	w.options.Backup = b
	w.start()
	return b
}

func master(name string) machine.Machine {
	m := worker(name)
	m.Spec.Roles = []string{"control-plane"}
	return m
}

// R-MA-27: a backup that fails stops the update of a machine of the control plane, in place and by replacement; it says why, and nothing is asked of the
// provider. It goes on when the backup is there. A worker needs none.
func TestBackupComesBeforeTheUpdate(t *testing.T) {
	for name, change := range map[string]func(*machine.Machine){
		"in place":    func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" },
		"replacement": func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a","size":"l"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				b := backedUp(w)
				m, other := w.store.Put(master("a")), w.store.Put(worker("w"))
				w.running(m.Key)
				w.running(other.Key)
				b.err = errors.New("the disk for snapshots is full")
				w.store.Edit(m.Key, change)
				w.store.Edit(other.Key, change)
				before := len(w.trace)
				w.until(m.Key, "held by the backup", func(m machine.Machine, _ bool) bool {
					return m.Step.Blocker == "backup: the disk for snapshots is full"
				})
				for range 30 {
					w.pass(m.Key)
					<-time.After(time.Minute)
				}
				for _, call := range w.trace[before:] {
					if call == "Update" || call == "Stop" || call == "Delete" || call == "Drain" {
						t.Errorf("R-MA-27: %s was called though the backup fails", call)
					}
				}
				if n := w.nodes.All()[0]; !slices.ContainsFunc(w.nodes.All(), func(n machine.Node) bool { return n.Annotations["controllertest/attempt"] != "" }) {
					t.Errorf("R-MA-27: no Node is marked for maintenance: %+v", n)
				}
				b.err = nil
				if at, _ := w.running(m.Key); len(b.done) != 1 || at.Failure != nil {
					t.Errorf("R-MA-27: backups %v, failure %+v", b.done, at.Failure)
				}
				w.running(other.Key)
				if len(b.done) != 1 {
					t.Errorf("R-MA-27: backups of a worker: %v", b.done)
				}
			})
		})
	}
}

// R-MA-27: a controller is killed before and after each call of an update with a backup: one attempt is made of it, and it is made before the provider is asked.
func TestKilledAroundTheBackup(t *testing.T) {
	life := func(t *testing.T, kill int) (calls int) {
		w := newWorld(t)
		b := backedUp(w)
		m := w.store.Put(master("a"))
		w.running(m.Key)
		w.calls, w.kill, w.trace = 0, kill, nil
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.running(m.Key)
		calls = w.calls
		if len(b.done) != 1 || len(b.calls) != 1 {
			t.Errorf("R-MA-27: attempts %v, done %v", b.calls, b.done)
		}
		if backup, update := slices.Index(w.trace, "Backup"), slices.Index(w.trace, "Update"); backup < 0 || update < backup {
			t.Errorf("R-MA-27: the calls are %v", w.trace)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
		return calls
	}
	var calls int
	synctest.Test(t, func(t *testing.T) { calls = life(t, -1) })
	for at := range calls {
		synctest.Test(t, func(t *testing.T) { life(t, at) })
		if t.Failed() {
			t.Fatalf("killed at half-call %d of %d", at, calls)
		}
	}
}

// changed are the machines that are past their backup, waiting those that wait for another one.
func changed(w *world, keys []machine.Key) (changed, waiting int) {
	for _, key := range keys {
		m := w.live(key)
		if u := m.Update; u != nil && (u.BackedUp || u.Sent) {
			changed++
		}
		if strings.Contains(m.Step.Blocker, "they go one by one") {
			waiting++
		}
	}
	return changed, waiting
}

// rounds reconciles all, again and again, and looks that one at most is being changed.
func rounds(w *world, keys []machine.Key, n int) {
	w.t.Helper()
	for range n {
		for _, key := range keys {
			w.pass(key)
		}
		if n, _ := changed(w, keys); n > 1 {
			w.t.Fatalf("R-MA-27: %d machines of the control plane are changed at a time", n)
		}
		<-time.After(10 * time.Second)
	}
}

// R-MA-13 and R-MA-27: machines of the control plane are changed one by one, whatever the budget allows, with a backup before each and without; one that fails stops the
// others.
func TestControlPlaneGoesOneByOne(t *testing.T) {
	t.Run("with backups", func(t *testing.T) { in(t, func(t *testing.T, w *world) { oneByOne(t, w, backedUp(w)) }) })
	t.Run("without", func(t *testing.T) { in(t, func(t *testing.T, w *world) { oneByOne(t, w, nil) }) })
}

func oneByOne(t *testing.T, w *world, b *backups) {
	t.Helper()
	w.budget.limit = 9
	var keys []machine.Key
	for _, name := range []string{"c", "a", "b"} {
		key := w.store.Put(master(name)).Key
		keys = append(keys, key)
		w.running(key)
		w.store.Edit(key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
	}
	report := w.nodes.Version
	w.nodes.Version = func(provider.Instance) provider.Versions { return provider.Versions{Kubelet: "v1.36.1"} } // the first one fails
	rounds(w, keys, 400)
	if _, waiting := changed(w, keys); waiting != 2 || b != nil && (len(b.done) != 1 || len(b.calls) != 1) {
		t.Errorf("R-MA-27: the first one has failed, %d wait for it, and backups are %+v", waiting, b)
	}
	w.nodes.Version = report
	rounds(w, keys, 100)
	for _, key := range keys {
		if at := w.live(key); at.Versions.Kubelet != "v1.36.2" || at.Update != nil {
			t.Errorf("machine %q runs %q, update %+v", key, at.Versions.Kubelet, at.Update)
		}
	}
	if b != nil && len(b.done) != 3 {
		t.Errorf("backups: %v", b.done)
	}
}
