// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

const clusterID = "c1"

// A world is a store, a provider and a workload cluster in memory, and a controller that may be killed around each call that changes something.
type world struct {
	t       *testing.T
	store   *controllertest.Store
	cloud   *machinetest.Memory
	nodes   *controllertest.Cluster
	budget  *budget
	options controller.Options
	ctl     *controller.Controller
	// second is another one that works at the same machines.
	second *controller.Controller
	// groups are sets and deployments, with who looks after them; nil where a test has none.
	groups      *groups
	group       *controller.GroupController
	secondGroup *controller.GroupController
	// trace are the calls that were made; the controller dies at number kill, counted in halves: before a call and after it.
	trace []string
	calls int
	kill  int
	kills int
	// moments are where the half-calls fall: nothing changes but by passes, and by calls that change something. turns and writes count these.
	moments       []moment
	turns, writes int
	// at, if set, is called before each half-call with its number. The caches stand still from half-call freezeAt on for so many passes.
	at       func(n int)
	freezeAt int
	passes   int
	// half means that the caches of sets and deployments do not stand still with the others.
	half bool
	// due is what a test of a matrix does once its calls are counted.
	due func()
	// told is how many calls, in halves, a story has.
	told int
	// need are calls before which others must have been made, done those that were. keep are disks that must be there until a time.
	need  map[string][]string
	done  map[string]bool
	keep  map[string]time.Time
	wrong []string
}

// A moment is one at which nothing changes.
type moment struct{ turns, writes int }

// killed is what a killed controller panics with.
type killed struct{ call string }

func newWorld(t *testing.T) *world {
	w := &world{t: t, cloud: &machinetest.Memory{Polls: 2}, kill: -1}
	w.store = &controllertest.Store{Hook: w.hook}
	w.nodes = &controllertest.Cluster{Hook: w.hook, Instances: w.cloud.Instances, Version: func(i provider.Instance) provider.Versions {
		r, _ := w.cloud.Made(i.Token)
		return r.Desired.Versions
	}}
	w.budget = &budget{hook: w.hook, limit: 1, held: map[string]string{}}
	w.options = controller.Options{
		Cluster: clusterID, Machines: w.store, Nodes: w.nodes, Provider: cloud{w.cloud, w}, Drainer: w.nodes, Budget: w.budget,
	}
	w.start()
	return w
}

func (w *world) start() {
	ctl, err := controller.New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ctl = ctl
	if w.groups != nil {
		w.group = w.groups.controller()
	}
}

// freeze makes all caches stand still.
func (w *world) freeze() {
	w.store.Freeze()
	w.nodes.Freeze()
	if w.groups != nil {
		w.groups.freeze()
	}
}

// pause counts a pass with caches that stand still.
func (w *world) pause() {
	if w.passes == 0 || w.calls <= w.freezeAt {
		return
	}
	if w.passes--; w.passes > 0 {
		return
	}
	w.store.Thaw()
	w.nodes.Thaw()
	if w.groups != nil {
		w.groups.stale = nil
	}
}

// hook kills the controller at its number.
func (w *world) hook(call string, after bool) error {
	n := w.calls
	w.calls++
	if !after {
		w.trace = append(w.trace, call)
	}
	if after && !reads[call] {
		w.writes++
		w.look(call)
	}
	w.moments = append(w.moments, moment{w.turns, w.writes})
	w.order(call, after)
	if w.passes > 0 && n == w.freezeAt {
		w.freeze()
	}
	if w.at != nil {
		w.at(n)
	}
	if n == w.kill {
		w.kills++
		panic(killed{call})
	}
	return nil
}

// reads are the calls that change nothing.
var reads = map[string]bool{
	"GetMachine": true, "GetMachineLive": true, "ListMachines": true, "ListMachinesLive": true, "Twins": true, "GetNode": true, "GetNodeLive": true,
	"Validate": true, "Plan": true, "Gates": true, "ReadGroup": true, "ReadGroupLive": true,
}

// look checks what holds at every moment.
func (w *world) look(call string) {
	alive := map[string]int{}
	for _, i := range w.cloud.Instances() {
		if i.State.Alive() {
			alive[i.Owner.Name]++
		}
	}
	for name, n := range alive {
		if n > 1 {
			w.wrong = append(w.wrong, fmt.Sprintf("at %s: machine %q has %d instances", call, name, n))
		}
	}
	for disk, until := range w.keep {
		if time.Now().Before(until) && !w.has(disk) {
			w.wrong = append(w.wrong, fmt.Sprintf("at %s: the disk %q is gone, which is to be kept until %v", call, disk, until))
		}
	}
	if w.groups != nil {
		w.groups.look(call)
	}
}

// has reports whether the provider has a disk.
func (w *world) has(disk string) bool {
	return slices.ContainsFunc(w.cloud.Instances(), func(i provider.Instance) bool {
		return slices.ContainsFunc(i.Disks, func(d provider.Disk) bool { return d.ID == disk })
	})
}

// order checks that what has to come before a call was there.
func (w *world) order(call string, after bool) {
	if after {
		if w.done != nil {
			w.done[call] = true
		}
		return
	}
	for _, first := range w.need[call] {
		if !w.done[first] {
			w.wrong = append(w.wrong, fmt.Sprintf("%s before %s", call, first))
		}
	}
}

// pass reconciles once, as each controller that lives does; a killed one is followed by another one.
func (w *world) pass(key machine.Key) (after time.Duration) {
	if w.second != nil {
		if _, err := w.second.Reconcile(w.t.Context(), key); err != nil {
			w.t.Log("the other controller: ", err)
		}
	}
	return w.alive(func() (time.Duration, error) { return w.ctl.Reconcile(w.t.Context(), key) })
}

// alive has a process do something. If it is killed at that, there is another one.
func (w *world) alive(do func() (time.Duration, error)) (after time.Duration) {
	w.turns++
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			w.start()
			after = time.Second
		}
	}()
	after, err := do()
	if err != nil {
		return time.Second
	}
	return after
}

// until reconciles until something is true; what waits for nothing is looked at again after a minute.
func (w *world) until(key machine.Key, what string, true func(m machine.Machine, there bool) bool) {
	w.t.Helper()
	for range 400 {
		m, err := w.store.Live(w.t.Context(), key)
		if true(m, err == nil) {
			return
		}
		w.pause()
		after := w.pass(key)
		if after <= 0 {
			after = time.Minute
		}
		<-time.After(after)
	}
	m, err := w.store.Live(w.t.Context(), key)
	w.t.Fatalf("machine %q is not %s: %v, phase %s, step %+v, failure %+v, update %+v, release %+v, instance %+v; last calls: %v", key, what, err, m.Phase, m.Step, m.Failure, m.Update, m.Release, m.Instance, w.trace[max(0, len(w.trace)-30):])
}

// running reconciles until the machine runs as it is wanted, or is gone.
func (w *world) running(key machine.Key) (at machine.Machine, there bool) {
	w.t.Helper()
	w.until(key, "running", func(m machine.Machine, is bool) bool {
		at, there = m, is
		return !is || m.Phase == machine.PhaseRunning && m.Digest == m.Spec.Digest() && m.Update == nil && m.Release == nil
	})
	return at, there
}

func (w *world) gone(key machine.Key) {
	w.t.Helper()
	w.until(key, "gone", func(_ machine.Machine, there bool) bool { return !there })
	w.pass(key)
}

// clean checks what is left in the end.
func (w *world) clean() {
	w.t.Helper()
	for _, wrong := range append(w.wrong, w.nodes.Broken()...) {
		w.t.Error("R-MA-02: ", wrong)
	}
	if left := w.cloud.Instances(); len(left) > 0 {
		w.t.Errorf("R-MA-02: the provider still has %+v", left)
	}
	if left := w.nodes.All(); len(left) > 0 {
		w.t.Errorf("R-MA-02: there are Nodes left: %+v", left)
	}
	if len(w.budget.held) > 0 {
		w.t.Errorf("slots are still held: %v", w.budget.held)
	}
}

func worker(name string) machine.Machine {
	m := machine.Machine{Key: machine.Key{Namespace: "fleet", Name: name}, UID: "uid-" + name}
	m.Spec.Config = []byte(`{"image":"a"}`)
	m.Spec.Versions.Kubelet = "v1.36.1"
	m.Spec.Roles = []string{"worker"}
	m.Spec.Deletion.Disks = provider.Destroy
	return m
}

// A budget is one in memory.
type budget struct {
	hook  controllertest.Hook
	limit int
	held  map[string]string // loans by UID
}

func (b *budget) Take(_ context.Context, _, uid, loan, _, _ string) (bool, string, error) {
	if _, has := b.held[uid]; !has && len(b.held) >= b.limit {
		return false, fmt.Sprintf("%d of %d are disturbed", len(b.held), b.limit), nil
	}
	if err := b.hook("TakeSlot", false); err != nil {
		return false, "", err
	}
	b.held[uid] = loan
	return true, "", b.hook("TakeSlot", true)
}

func (b *budget) Loan(_ context.Context, _, uid string) (loan string, there bool, err error) {
	loan, there = b.held[uid]
	return loan, there, nil
}

func (b *budget) Free(_ context.Context, _, uid, loan string) error {
	if err := b.hook("FreeSlot", false); err != nil {
		return err
	}
	if b.held[uid] == loan || loan == "" {
		delete(b.held, uid)
	}
	return b.hook("FreeSlot", true)
}

// cloud is a provider whose calls the world sees.
type cloud struct {
	*machinetest.Memory
	w *world
}

func seen[T any](w *world, call string, f func() (T, error)) (T, error) {
	if err := w.hook(call, false); err != nil {
		var none T
		return none, err
	}
	got, err := f()
	_ = w.hook(call, true)
	return got, err
}

func (c cloud) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return seen(c.w, "Create", func() (provider.Instance, error) { return c.Memory.Create(ctx, r) })
}

func (c cloud) Get(ctx context.Context, r provider.Ref) (provider.Instance, error) {
	return seen(c.w, "Get", func() (provider.Instance, error) { return c.Memory.Get(ctx, r) })
}

func (c cloud) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return seen(c.w, "Delete", func() (provider.Progress, error) { return c.Memory.Delete(ctx, r) })
}

func (c cloud) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	return seen(c.w, "Plan", func() (provider.Plan, error) { return c.Memory.Plan(ctx, r) })
}

func (c cloud) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return seen(c.w, "Update", func() (provider.Progress, error) { return c.Memory.Update(ctx, r) })
}

func (c cloud) Stop(ctx context.Context, r provider.Ref) (provider.Progress, error) {
	return seen(c.w, "Stop", func() (provider.Progress, error) { return c.Memory.Stop(ctx, r) })
}

func (c cloud) Reboot(ctx context.Context, r provider.Ref, id string) (provider.Progress, error) {
	return seen(c.w, "Reboot", func() (provider.Progress, error) {
		progress, err := c.Memory.Reboot(ctx, r, id)
		if g := c.w.groups; g != nil && err == nil && progress.Done {
			g.rebooted(r.Token, id)
		}
		return progress, err
	})
}

func (c cloud) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	return seen(c.w, "Adopt", func() (provider.Instance, error) { return c.Memory.Adopt(ctx, r) })
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
