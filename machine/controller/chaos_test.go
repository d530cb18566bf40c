// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/machinetest"
)

// R-MA-02: machines are made, changed, decommissioned and deleted at random while the provider refuses, loses replies and runs out, the workload
// API goes away, drains hang, caches stand still and controllers are killed: there is never a second instance of a machine, no Node goes before its
// instance, and when the trouble is over and all are deleted, nothing is left.
func TestChaos(t *testing.T) {
	for seed := range raceshare.Of(t, uint64(400)) {
		synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func chaos(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	w.budget.limit = 2
	names := []string{"a", "b", "c"}
	var keys []machine.Key
	for _, name := range names {
		keys = append(keys, worker(name).Key)
	}
	end := func() {}
	for range 150 {
		if random.IntN(4) == 0 {
			w.kill = w.calls + random.IntN(6)
		}
		end = trouble(w, random, end)
		edit(w, random, names[random.IntN(len(names))])
		w.pass(keys[random.IntN(len(keys))])
		<-time.After(time.Duration(random.IntN(20)) * time.Second)
	}
	end()
	w.kill = -1
	for _, key := range keys {
		w.store.Edit(key, func(m *machine.Machine) { m.Spec.Paused = false })
		w.store.Delete(key)
	}
	for range 300 {
		for _, key := range keys {
			w.pass(key)
		}
		<-time.After(10 * time.Second)
	}
	for _, key := range keys {
		w.gone(key)
	}
	w.clean()
}

// trouble begins or ends one kind of trouble.
func trouble(w *world, random *rand.Rand, end func()) func() {
	faults := []machinetest.Fault{
		machinetest.RateLimit, machinetest.RateLimitAfter, machinetest.Unavailable, machinetest.LostReply, machinetest.StaleList,
		machinetest.Stockout, machinetest.Unauthorized, machinetest.SlowStart,
	}
	if random.IntN(3) > 0 {
		return end
	}
	end()
	switch n := random.IntN(len(faults) + 4); n {
	case len(faults):
		w.nodes.Away(true)
		return func() { w.nodes.Away(false) }
	case len(faults) + 1:
		w.nodes.Stick("a budget allows nothing")
		return func() { w.nodes.Stick("") }
	case len(faults) + 2:
		w.store.Freeze()
		return w.store.Thaw
	case len(faults) + 3:
		return func() {}
	default:
		ended := w.cloud.Inject(faults[n])
		return ended
	}
}

// edit does what users do.
func edit(w *world, random *rand.Rand, name string) {
	key := worker(name).Key
	change := func(f func(m *machine.Machine)) { w.store.Edit(key, f) }
	switch random.IntN(12) {
	case 0, 1:
		if _, err := w.store.Live(w.t.Context(), key); isGone(err) {
			m := worker(name)
			m.UID = fmt.Sprintf("uid-%s-%d", name, w.calls)
			w.store.Put(m)
		}
	case 2:
		w.store.Delete(key)
	case 3:
		change(func(m *machine.Machine) { m.Spec.Versions.Kubelet = fmt.Sprintf("v1.36.%d", random.IntN(3)) })
	case 4:
		sizes := []string{"s", "l"}
		change(func(m *machine.Machine) {
			m.Spec.Config = []byte(`{"image":"a","size":"` + sizes[random.IntN(2)] + `"}`)
		})
	case 5:
		change(func(m *machine.Machine) { m.Spec.Config = []byte(`{"nonsense":1}`) })
	case 6:
		change(func(m *machine.Machine) { m.Spec.Paused = !m.Spec.Paused })
	case 7:
		change(func(m *machine.Machine) { m.Spec.Decommission = !m.Spec.Decommission })
	case 8:
		policies := []machine.UpdatePolicy{machine.ProviderDecides, machine.InPlaceOnly, machine.ReplaceOnly, machine.ManualUpdate}
		change(func(m *machine.Machine) { m.Spec.UpdatePolicy = policies[random.IntN(len(policies))] })
	}
}
