// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// R-MA-02 and R-MA-24: a controller is killed before and after each call that it makes or reads in a machine's decommissioning, its return, its adoption by another
// machine, the end of its disks when their time is over, and its replacement with a backup; or it is frozen before the call. There is one instance of
// each machine, none is leaked, no disk goes before its time, and whoever has to be asked is asked first.
func TestKilledInEachLife(t *testing.T) {
	for name, tell := range map[string]story{
		"decommissioned and deleted": decommissioned,
		"decommissioned and back":    returned,
		"retained for a while":       expired,
		"adopted by another machine": adopted,
		"replaced after a backup":    replaced,
		"an orphan":                  orphaned,
	} {
		t.Run(name, func(t *testing.T) { matrix(t, tell, func(call string) bool { return !reads[call] }) })
	}
}

// agreed is a gate that is seen.
type agreed struct{ w *world }

func (g agreed) Check(context.Context, machine.Machine) (string, error) {
	return seen(g.w, "Gates", func() (string, error) { return "", nil })
}

// members are a hook that takes some calls for each machine.
type members struct {
	w     *world
	calls map[string]int
	// left are the tokens of those that are no members any more.
	left map[string]bool
}

func (h *members) Leave(_ context.Context, m machine.Machine) (bool, string, error) {
	if h.left[m.Token] {
		return true, "", nil
	}
	if h.calls[m.Token]++; h.calls[m.Token] < 3 {
		blocked, err := seen(h.w, "Leaving", func() (string, error) { return "the member is being removed", nil })
		return false, blocked, err
	}
	done, err := seen(h.w, "Leave", func() (bool, error) { h.left[m.Token] = true; return true, nil })
	return done, "", err
}

// master has the world ask everybody, and is a machine of whom all are asked.
func (w *world) master() (machine.Machine, *members, *backups) {
	h := &members{w: w, calls: map[string]int{}, left: map[string]bool{}}
	b := &backups{w: w, calls: map[string]int{}}
	w.options.Gates, w.options.Members, w.options.Backup = []controller.Gate{agreed{w}}, h, b
	w.start()
	m := master("a")
	m.Spec.Deletion.Disks = provider.Retain
	return w.store.Put(m), h, b
}

// retired reconciles until a machine is, taking away the hooks that it waits for.
func (w *world) retired(key machine.Key) {
	w.t.Helper()
	w.until(key, "retired", func(m machine.Machine, there bool) bool {
		if h := m.Spec.Deletion.Hooks; there && len(h) > 0 && strings.Contains(m.Step.Blocker, fmt.Sprintf("hook %q", h[0].Name)) {
			w.order(h[0].Name, true)
			w.store.Edit(key, func(m *machine.Machine) { m.Spec.Deletion.Hooks = h[1:] })
		}
		return !there || m.Phase == machine.PhaseRetired
	})
}

// needs has the order of an end checked.
func (w *world) needs() {
	w.done = map[string]bool{}
	w.need = map[string][]string{
		"Cordon": {"Gates", "TakeSlot"}, "Drain": {"Cordon", "move"}, "Leaving": {"Drain", "dump"}, "Leave": {"Leaving"},
		"Stop": {"Leave"}, "RemoveNode": {"Stop"}, "Delete": {"Stop", "RemoveNode"}, "FreeSlot": {"Delete"},
	}
}

func decommissioned(w *world) []string {
	m, h, _ := w.master()
	w.store.Edit(m.Key, func(m *machine.Machine) {
		m.Spec.Deletion.Hooks = []machine.Hook{{Name: "move", Owner: "ops", Phase: machine.BeforeDrain}, {Name: "dump", Owner: "ops", Phase: machine.BeforeStop}}
	})
	first, _ := w.running(m.Key)
	w.begin()
	w.keep = map[string]time.Time{first.Instance.Disks[0].ID: time.Now().AddDate(1, 0, 0)}
	w.needs()
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
	w.retired(m.Key)
	at := w.live(m.Key)
	tale := []string{fmt.Sprint("retained ", at.Retained[0].Token == first.Token, len(at.Retained), " incarnation ", at.Incarnation, " left ", h.left)}
	w.need = nil
	for range 3 {
		w.pass(m.Key)
	}
	w.store.Delete(m.Key)
	w.gone(m.Key)
	return w.over(tale)
}

func returned(w *world) []string {
	m := worker("a")
	m.Spec.Deletion.Disks = provider.Retain
	w.store.Put(m)
	w.running(m.Key)
	w.begin()
	var tale []string
	for range 2 {
		at := w.live(m.Key)
		w.keep = map[string]time.Time{at.Instance.Disks[0].ID: time.Now().AddDate(1, 0, 0)}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
		w.retired(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = false })
		at, _ = w.running(m.Key)
		tale = append(tale, fmt.Sprint(at.Incarnation, at.Instance.Disks, at.Retained))
	}
	w.keep = nil
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
	w.store.Delete(m.Key)
	w.gone(m.Key)
	return w.over(tale)
}

// expired keeps disks for an hour: those of a machine that is decommissioned, and then those of one that is gone.
func expired(w *world) []string {
	w.options.Orphans = controller.OrphanPolicy{Expire: true}
	w.start()
	m := worker("a")
	m.Spec.Deletion.Disks, m.Spec.Deletion.RetainFor = provider.Retain, time.Hour
	w.store.Put(m)
	w.running(m.Key)
	w.begin()
	anHour := func() {
		w.keep = map[string]time.Time{w.live(m.Key).Instance.Disks[0].ID: time.Now().Add(time.Hour).Truncate(time.Second)}
	}
	anHour()
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
	w.retired(m.Key)
	w.until(m.Key, "without disks", func(m machine.Machine, _ bool) bool { return len(m.Retained) == 0 })
	tale := []string{fmt.Sprint("retired, and the provider has ", len(w.cloud.Instances()))}
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = false })
	w.running(m.Key)
	anHour()
	w.store.Delete(m.Key)
	w.gone(m.Key)
	for range 20 {
		w.survey()
		<-time.After(10 * time.Minute)
	}
	return w.over(append(tale, fmt.Sprint("gone, and the provider has ", len(w.cloud.Instances()))))
}

// survey asks for what nobody owns.
func (w *world) survey() {
	w.pause()
	w.alive(func() (time.Duration, error) { _, err := w.ctl.Survey(w.t.Context()); return 0, err })
}

func adopted(w *world) []string {
	w.options.Orphans = controller.OrphanPolicy{Retain: true, Expire: true}
	w.start()
	m := worker("a")
	m.Spec.Deletion.Disks, m.Spec.Deletion.RetainFor = provider.Retain, time.Hour
	w.store.Put(m)
	at, _ := w.running(m.Key)
	w.begin()
	var tale []string
	for _, name := range []string{"b", "c"} {
		w.keep = map[string]time.Time{at.Instance.Disks[0].ID: time.Now().AddDate(1, 0, 0)}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		m = worker(name)
		m.Spec.Adopt, m.Spec.Deletion.Disks = at.Token, provider.Retain
		w.store.Put(m)
		for range 10 { // it is named: its time does not count any more
			w.survey()
			<-time.After(time.Hour)
		}
		at, _ = w.running(m.Key)
		tale = append(tale, fmt.Sprint(name, at.Incarnation, at.Instance.Disks, at.Retained))
	}
	w.keep = nil
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
	w.store.Delete(m.Key)
	w.gone(m.Key)
	return w.over(tale)
}

// replaced changes a member in place and by another one.
func replaced(w *world) []string {
	m, h, b := w.master()
	at, _ := w.running(m.Key)
	w.begin()
	w.keep = map[string]time.Time{at.Instance.Disks[0].ID: time.Now().AddDate(1, 0, 0)}
	w.done, w.need = map[string]bool{}, map[string][]string{"Update": {"Plan", "TakeSlot", "Backup", "Drain"}}
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
	w.running(m.Key)
	tale := []string{fmt.Sprint("updated after ", len(b.done), " backups of ", len(b.calls), ", left: ", len(h.left))}
	w.done, w.need = map[string]bool{}, map[string][]string{
		"Drain": {"Gates", "TakeSlot", "Backup"}, "Leaving": {"Drain"}, "Stop": {"Leave"}, "RemoveNode": {"Stop"}, "Delete": {"Stop", "RemoveNode"}, "Create": {"Delete"},
	}
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a","size":"l"}`) })
	at, _ = w.running(m.Key)
	tale = append(tale, fmt.Sprint("replaced after ", len(b.done), " backups of ", len(b.calls), ", left: ", len(h.left), " incarnation ", at.Incarnation, " retained ", len(at.Retained)))
	w.need = nil
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
	w.store.Delete(m.Key)
	w.gone(m.Key)
	return w.over(tale)
}

// orphaned is an instance that somebody else has left, while a machine is made and ended beside it.
func orphaned(w *world) []string {
	w.options.Orphans = controller.OrphanPolicy{Retain: true, Expire: true}
	w.start()
	r := provider.CreateRequest{Token: provider.Token(clusterID, "nobody", 1), Owner: provider.Owner{Cluster: clusterID, Name: "nobody", UID: "nobody", Incarnation: 1}}
	r.Desired.Config = []byte(`{"image":"a"}`)
	r.Digest = r.Desired.Digest()
	if _, err := w.cloud.Create(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	w.begin()
	w.keep = map[string]time.Time{"disk-" + r.Token: time.Now().AddDate(1, 0, 0)}
	m := w.store.Put(worker("a"))
	for range 6 {
		w.survey()
		w.pass(m.Key)
		<-time.After(time.Hour)
	}
	w.running(m.Key)
	w.store.Delete(m.Key)
	w.gone(m.Key)
	for range 4 {
		w.survey()
		<-time.After(time.Hour)
	}
	for _, n := range w.nodes.All() { // that of a machine which nobody knows is for whoever looks after Nodes
		if err := w.nodes.Remove(w.t.Context(), n.NodeRef); err != nil {
			w.t.Error(err)
		}
	}
	return w.over(nil)
}

// R-MA-23 and R-MA-24: a decommissioning is taken back before each of its calls, by a user who knows nothing of it, and the controller is killed there. Before
// the machine has left its services it stays what it was; after that it comes back as another incarnation. It always has the same disk.
func TestDecommissionIsTakenBack(t *testing.T) {
	var calls int
	synctest.Test(t, func(t *testing.T) { calls = takenBack(t, -1) })
	if calls == 0 || t.Failed() {
		t.Fatalf("%d half-calls", calls)
	}
	t.Logf("taken back at each of %d half-calls", calls)
	step := raceshare.Step(t)
	for at := 0; at < calls; at += step + step/10 {
		synctest.Test(t, func(t *testing.T) { takenBack(t, at) })
		if t.Failed() {
			t.Fatalf("taken back at half-call %d of %d", at, calls)
		}
	}
}

func takenBack(t *testing.T, at int) (calls int) {
	w := watched(t)
	m, h, _ := w.master()
	first, _ := w.running(m.Key)
	w.begin()
	w.kill = at
	decommission := func(on bool) {
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = on })
	}
	decommission(true)
	w.at = func(n int) {
		if n == at {
			decommission(false)
		}
	}
	w.until(m.Key, "retired, or taken back", func(m machine.Machine, _ bool) bool {
		return m.Phase == machine.PhaseRetired || w.kills > 0
	})
	calls, w.at = w.calls, nil
	decommission(false)
	second, _ := w.running(m.Key)
	if disk := first.Instance.Disks[0]; !slices.Equal(second.Instance.Disks, first.Instance.Disks) || len(second.Retained) != 0 {
		t.Errorf("R-MA-24: it had the disk %v, and has %v, retained %v", disk, second.Instance.Disks, second.Retained)
	}
	if h.calls[first.Token] > 0 && (second.Incarnation != 2 || !h.left[first.Token]) {
		t.Errorf("R-MA-23: it has begun to leave, and is the same: incarnation %d, left %v", second.Incarnation, h.left)
	}
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
	w.store.Delete(m.Key)
	w.gone(m.Key)
	w.clean()
	return calls
}

// R-MA-02: an instance whose start was cut off goes on by Create at the next look, though the provider's Get is a look alone; it is not left until its time is over.
func TestPendingGoesOn(t *testing.T) {
	for kill := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := watched(t)
			m := w.store.Put(worker("a"))
			w.kill = kill
			begun := time.Now()
			w.running(m.Key)
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("killed at half-call %d it took %v", kill, took)
			}
			w.store.Delete(m.Key)
			w.gone(m.Key)
			w.clean()
		})
	}
}

// R-MA-02 and R-MA-24: a controller is frozen before each call of a decommissioning and of the return from it, while others delete the machine to its end. Then the call
// goes out late: nothing runs in the end, and what is retained is one disk at most.
func TestFrozenWhileARetiredMachineEnds(t *testing.T) {
	life := func(t *testing.T, at int) (trace []string) {
		w := watched(t)
		m := worker("a")
		m.Spec.Deletion.Disks = provider.Retain
		w.store.Put(m)
		w.running(m.Key)
		w.begin()
		w.at = func(n int) {
			if n == at {
				first := w.ctl
				w.start()
				w.store.Delete(m.Key)
				w.gone(m.Key)
				w.second = first
			}
		}
		for _, on := range []bool{true, false} {
			w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = on })
			for range 20 {
				<-time.After(max(w.pass(m.Key), 5*time.Second))
			}
		}
		trace, w.at = w.trace, nil
		w.store.Delete(m.Key)
		w.gone(m.Key)
		if left := w.over(nil); len(left) > 1 {
			t.Errorf("R-MA-24: %v", left)
		}
		w.clean()
		return trace
	}
	var calls []string
	synctest.Test(t, func(t *testing.T) { calls = life(t, -1) })
	done := 0
	for i := 0; i < len(calls) && !t.Failed(); i++ {
		if !reads[calls[i]] {
			done++
			synctest.Test(t, func(t *testing.T) { life(t, 2*i) })
		}
	}
	t.Logf("frozen before %d of %d calls", done, len(calls))
}
