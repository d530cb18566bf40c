// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/machine"
)

// life takes a machine through all that can happen to one that nothing goes wrong with: it is made, updated in place, replaced, and deleted.
func life(w *world) (incarnations []int64) {
	m := w.store.Put(worker("a"))
	note := func() {
		if at, there := w.running(m.Key); there {
			incarnations = append(incarnations, at.Incarnation)
		}
	}
	note()
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
	note()
	w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a","size":"l"}`) })
	note()
	w.store.Delete(m.Key)
	w.gone(m.Key)
	return incarnations
}

// R-MA-02 and R-MA-06: a controller is killed before and after each call of a machine's life that changes or asks for something, once with caches
// that are up to date and once with a list of machines that stays as it was: there is never a second instance, and nothing is left in the end.
func TestKilledAroundEveryCall(t *testing.T) {
	var calls int
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if diff := cmp.Diff([]int64{1, 1, 2}, life(w)); diff != "" {
			t.Errorf("incarnations (-want +got):\n%s", diff)
		}
		w.clean()
		calls = w.calls
		t.Logf("%d calls: %v", len(w.trace), w.trace)
	})
	if t.Failed() {
		return
	}
	for at := range calls {
		for _, stale := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { killedAt(t, at, stale) })
			if t.Failed() {
				t.Fatalf("killed at half-call %d of %d, with stale caches: %t", at, calls, stale)
			}
		}
	}
}

// killedAt kills the controller once. The caches of the next one may stay for a while what they were some calls before.
func killedAt(t *testing.T, at int, stale bool) {
	w := newWorld(t)
	w.kill = at
	if stale {
		w.freezeAt, w.passes = max(at-7, 0), 12
	}
	if diff := cmp.Diff([]int64{1, 1, 2}, life(w)); diff != "" {
		t.Errorf("incarnations (-want +got):\n%s", diff)
	}
	w.clean()
	if w.kills != 1 {
		t.Errorf("killed %d times", w.kills)
	}
}

// R-MA-02: a controller is frozen before each call, while another one goes on, or takes the machine to its end. Then the call goes out late, and both go
// on. There is never a second instance, and nothing is left in the end.
func TestFrozenBeforeEveryCall(t *testing.T) {
	for at := 0; at < 100; at += 2 {
		for _, end := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { frozenAt(t, at, end) })
			if t.Failed() {
				t.Fatalf("frozen at half-call %d, the machine ended meanwhile: %t", at, end)
			}
		}
	}
}

func frozenAt(t *testing.T, at int, end bool) {
	w := newWorld(t)
	key := worker("a").Key
	w.at = func(n int) {
		if n != at {
			return
		}
		first := w.ctl
		w.start() // the other one; the first one stays in this call
		defer func() { w.second = first }()
		if end {
			w.store.Delete(key)
			w.gone(key)
			return
		}
		for range 20 {
			<-time.After(max(w.pass(key), time.Second))
		}
	}
	incarnations := life(w)
	if diff := cmp.Diff([]int64{1, 1, 2}, incarnations); diff != "" && !end {
		t.Errorf("incarnations (-want +got):\n%s", diff)
	}
	w.clean()
}
