// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/file"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

var theMachine = machine.Key{Namespace: "fleet", Name: "a"}

// A mover makes a machine from a file, and moves it into a cluster. It is killed once, around one of its calls.
type mover struct {
	t       *testing.T
	dir     string
	cloud   *machinetest.Memory
	nodes   *controllertest.Cluster
	files   *file.Store
	cluster *controllertest.Store
	kill    int
	calls   []string
	wrong   []string
}

type killed struct{}

func newMover(t *testing.T, dir string, kill int) *mover {
	m := &mover{t: t, dir: dir, cloud: &machinetest.Memory{Polls: 1}, kill: kill}
	m.nodes = &controllertest.Cluster{Instances: m.cloud.Instances, Hook: m.hook, Version: func(i provider.Instance) provider.Versions {
		r, _ := m.cloud.Made(i.Token)
		return r.Desired.Versions
	}}
	m.cluster = &controllertest.Store{Hook: m.hook}
	return m
}

func (m *mover) hook(call string, _ bool) error {
	n := len(m.calls)
	m.calls = append(m.calls, call)
	alive := 0
	for _, i := range m.cloud.Instances() {
		if i.State.Alive() {
			alive++
		}
	}
	if alive > 1 {
		m.wrong = append(m.wrong, fmt.Sprintf("at %s there are %d instances", call, alive))
	}
	if n == m.kill {
		panic(killed{})
	}
	return nil
}

// try has a process do something, and reports whether it has lived through it.
func (m *mover) try(f func()) (lived bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(killed); !ours {
				panic(r)
			}
		}
	}()
	f()
	return true
}

// open is another process: what the one before had of the directory is gone with it.
func (m *mover) open() {
	if m.files != nil {
		must(m.t, m.files.Close())
	}
	m.files = open(m.t, m.dir)
}

func (m *mover) controller(store controller.Machines) *controller.Controller {
	c, err := controller.New(controller.Options{Cluster: "east", Machines: store, Nodes: m.nodes, Provider: calls{m.cloud, m}, Drainer: m.nodes})
	must(m.t, err)
	return c
}

// until has controllers work at the machine, one after the other if they are killed, until something is true. It is false if one was killed and once is set.
func (m *mover) until(store func() controller.Machines, once bool, true func(machine.Machine, error) bool) bool {
	m.t.Helper()
	c := m.controller(store())
	for range 300 {
		if true(store().Live(m.t.Context(), theMachine)) {
			return !once || !m.dead()
		}
		lived := m.try(func() {
			if _, err := c.Reconcile(m.t.Context(), theMachine); err != nil {
				m.t.Log(err)
			}
		})
		if !lived && once {
			return false
		}
		if !lived {
			if m.files != nil {
				m.open()
			}
			c = m.controller(store())
		}
		<-time.After(10 * time.Second)
	}
	at, err := store().Live(m.t.Context(), theMachine)
	m.t.Fatalf("it does not come to rest: %+v, %+v, %v, %v", at, at.Step, err, m.calls)
	return false
}

func (m *mover) dead() bool { return m.kill >= 0 && len(m.calls) > m.kill }

func (m *mover) fromFiles() controller.Machines   { return filed{m.files, m} }
func (m *mover) fromCluster() controller.Machines { return m.cluster }

// move creates in the cluster what the directory exports, as often as it takes, and closes the directory.
func (m *mover) move() {
	m.t.Helper()
	for !m.try(func() {
		m.open()
		all, err := m.files.Export()
		must(m.t, err)
		for _, o := range all {
			c, err := o.Core()
			must(m.t, err)
			must(m.t, m.hook("CreateInCluster", false))
			if _, err := m.cluster.Live(m.t.Context(), c.Key); err != nil {
				m.cluster.Put(c)
			}
			must(m.t, m.hook("CreateInCluster", true))
		}
		must(m.t, m.hook("Close", false))
		must(m.t, m.files.Close())
		m.files = nil
	}) {
		continue
	}
}

func running(at machine.Machine, err error) bool {
	return err == nil && at.Phase == machine.PhaseRunning && at.Update == nil && at.Release == nil && at.Deleted.IsZero()
}

// filed and calls are a directory and a provider whose calls are seen.
type filed struct {
	*file.Store
	m *mover
}

func seen[T any](m *mover, call string, f func() (T, error)) (T, error) {
	_ = m.hook(call, false)
	got, err := f()
	_ = m.hook(call, true)
	return got, err
}

func (f filed) PutStatus(ctx context.Context, a machine.Machine) (machine.Machine, error) {
	return seen(f.m, "PutStatus", func() (machine.Machine, error) { return f.Store.PutStatus(ctx, a) })
}

func (f filed) SetFinalizer(ctx context.Context, a machine.Machine, on bool) (machine.Machine, error) {
	return seen(f.m, "SetFinalizer", func() (machine.Machine, error) { return f.Store.SetFinalizer(ctx, a, on) })
}

func (f filed) SetProviderID(ctx context.Context, a machine.Machine, id string) (machine.Machine, error) {
	return seen(f.m, "SetProviderID", func() (machine.Machine, error) { return f.Store.SetProviderID(ctx, a, id) })
}

type calls struct {
	*machinetest.Memory
	m *mover
}

func (c calls) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return seen(c.m, "Create", func() (provider.Instance, error) { return c.Memory.Create(ctx, r) })
}

func (c calls) Get(ctx context.Context, r provider.Ref) (provider.Instance, error) {
	return seen(c.m, "Get", func() (provider.Instance, error) { return c.Memory.Get(ctx, r) })
}

func (c calls) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	return seen(c.m, "Adopt", func() (provider.Instance, error) { return c.Memory.Adopt(ctx, r) })
}

func (c calls) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return seen(c.m, "Update", func() (provider.Progress, error) { return c.Memory.Update(ctx, r) })
}

func (c calls) Stop(ctx context.Context, r provider.Ref) (provider.Progress, error) {
	return seen(c.m, "Stop", func() (provider.Progress, error) { return c.Memory.Stop(ctx, r) })
}

func (c calls) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return seen(c.m, "Delete", func() (provider.Progress, error) { return c.Memory.Delete(ctx, r) })
}

// R-MA-12 and R-MA-02: whoever makes a machine from a file, moves it into a cluster, decommissions it there and takes that back, is killed before and after each call.
// There is one instance all the time, made once and with the same disk, and in the end nothing is left. A machine that was retired before the move is one after it.
func TestKilledInAMove(t *testing.T) {
	step := raceshare.Step(t)
	for _, retired := range []bool{false, true} {
		dir, calls := t.TempDir(), 0
		synctest.Test(t, func(t *testing.T) { calls = moved(t, dir, -1, retired) })
		t.Logf("retired before the move: %t: %d calls", retired, calls/2)
		for at := 0; at < calls && !t.Failed(); at += step + step/10 {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { moved(t, dir, at, retired) })
			if t.Failed() {
				t.Fatalf("killed at half-call %d of %d, retired before the move: %t", at, calls, retired)
			}
		}
	}
}

func moved(t *testing.T, dir string, kill int, retired bool) (halves int) {
	m := newMover(t, dir, kill)
	put(t, dir, "a")
	m.open()
	_, err := m.files.Refresh()
	must(t, err)
	m.until(m.fromFiles, false, running)
	disk := m.cloud.Instances()[0].Disks[0].ID
	if retired {
		rewrite(t, dir, "  decommission: true")
		_, err = m.files.Refresh()
		must(t, err)
		m.until(m.fromFiles, false, isRetired)
	}
	m.move()
	if !retired {
		m.until(m.fromCluster, false, running)
		if n := m.cloud.Calls(); n["Delete"]+n["Stop"] > 0 || len(m.cloud.Instances()) != 1 {
			t.Errorf("R-MA-12: moved, and the provider was asked %v, and has %v", n, m.cloud.Instances())
		}
		m.cluster.Edit(theMachine, func(m *machine.Machine) { m.Spec.Decommission = true })
	}
	m.until(m.fromCluster, false, isRetired)
	m.cluster.Edit(theMachine, func(m *machine.Machine) { m.Spec.Decommission = false })
	m.until(m.fromCluster, false, running)
	if is := m.cloud.Instances(); len(is) != 1 || is[0].Disks[0].ID != disk {
		t.Errorf("R-MA-24: it had the disk %q, and the provider has %+v", disk, is)
	}
	m.end()
	return len(m.calls)
}

func isRetired(at machine.Machine, err error) bool {
	return err == nil && at.Phase == machine.PhaseRetired
}

// R-MA-12 and R-MA-02: whoever looks after a machine from a file is killed before and after each call, and somebody moves it into a cluster at once: what is half-done is
// not moved, and then there is one instance, with all that was wanted of it, and in the end nothing is left.
func TestMovedHalfway(t *testing.T) {
	step := raceshare.Step(t)
	for _, c := range []struct{ name, then string }{
		{"made", ""}, {"updated", "  providerConfig: {image: b}"}, {"replaced", "  providerConfig: {image: a, size: l}"}, {"retired", "  decommission: true"}, {"deleted", "delete"},
	} {
		dir, calls := t.TempDir(), 0
		synctest.Test(t, func(t *testing.T) { calls, _ = movedHalfway(t, dir, -1, c.then) })
		refused := 0
		for at := 0; at < calls && !t.Failed(); at += step + step/10 {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				_, no := movedHalfway(t, dir, at, c.then)
				refused += no
			})
			if t.Failed() {
				t.Fatalf("%s: killed at half-call %d of %d", c.name, at, calls)
			}
		}
		t.Logf("%s: %d calls; of %d moves %d were refused at first", c.name, calls/2, calls, refused)
	}
}

func movedHalfway(t *testing.T, dir string, kill int, then string) (halves, refused int) {
	m := newMover(t, dir, kill)
	put(t, dir, "a")
	m.open()
	_, err := m.files.Refresh()
	must(t, err)
	if then != "" {
		m.kill = -1
		m.until(m.fromFiles, false, running)
		m.calls, m.kill = nil, kill
		m.want(then)
	}
	rest := func(at machine.Machine, err error) bool {
		return err != nil || running(at, err) && at.Digest == at.Spec.Digest() && !at.Spec.Decommission || isRetired(at, err)
	}
	m.until(m.fromFiles, true, rest)
	halves = len(m.calls)
	m.kill = -1
	if refused = m.refused(); refused > 0 {
		m.until(m.fromFiles, false, rest)
	}
	m.move()
	if then == "delete" {
		if _, err := m.cluster.Live(t.Context(), theMachine); err == nil {
			t.Errorf("R-MA-12: it was deleted, and is in the cluster")
		}
	} else {
		m.until(m.fromCluster, false, rest)
	}
	alive := 0
	for _, i := range m.cloud.Instances() {
		if i.State.Alive() {
			alive++
		}
	}
	if want := map[bool]int{true: 0, false: 1}[then == "delete" || strings.Contains(then, "decommission")]; alive != want {
		t.Errorf("R-MA-02: %d instances are alive, want %d", alive, want)
	}
	m.cluster.Edit(theMachine, func(m *machine.Machine) { m.Spec.Decommission = false }) // what was retained is destroyed with the machine that has it
	m.until(m.fromCluster, false, func(at machine.Machine, err error) bool { return err != nil || running(at, err) })
	m.end()
	return halves, refused
}

// end has the machine go, and looks for what is left.
func (m *mover) end() {
	m.t.Helper()
	m.cluster.Edit(theMachine, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
	m.cluster.Delete(theMachine)
	m.until(m.fromCluster, false, func(_ machine.Machine, err error) bool { return err != nil })
	if left := m.cloud.Instances(); len(left)+len(m.nodes.All())+len(m.wrong) > 0 {
		m.t.Errorf("R-MA-02: left are %+v and the Nodes %+v; wrong: %v", left, m.nodes.All(), m.wrong)
	}
}

// want writes the manifest anew, with all disks to be destroyed, or deletes the machine.
func (m *mover) want(then string) {
	spec := then
	if then == "delete" {
		spec = ""
	}
	if !strings.Contains(then, "decommission") {
		spec += "\n  deletion: {diskPolicy: Destroy}"
	}
	rewrite(m.t, m.dir, spec)
	_, err := m.files.Refresh()
	must(m.t, err)
	if then == "delete" {
		must(m.t, os.Remove(filepath.Join(m.dir, "a.yaml")))
		must(m.t, m.files.Delete(theMachine))
	}
}

// refused is one if the machine can't be moved yet.
func (m *mover) refused() int {
	m.open()
	_, err := m.files.Export()
	if err == nil {
		return 0
	}
	if !strings.Contains(err.Error(), `export machine "fleet/a": `) {
		m.t.Errorf("the refusal is %v", err)
	}
	return 1
}

// rewrite writes the manifest anew.
func rewrite(t *testing.T, dir, then string) {
	t.Helper()
	text := strings.ReplaceAll(manifest, "NAME", "a")
	if strings.Contains(then, "providerConfig") {
		text = strings.ReplaceAll(text, "  providerConfig: {image: a}\n", "")
	}
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text+then+"\n"), 0o600))
}
