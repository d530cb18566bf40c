// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// R-MA-30: machines go up and down with a bounded number of writes each, and while nothing happens nothing is written, and the provider is asked
// for its list alone.
func TestCallsOfALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := raceshare.Of(t, 200)
		w := newWorld(t)
		w.cloud.Polls, w.store.Hook, w.nodes.Hook = 0, nil, nil
		w.options = controller.Options{Cluster: clusterID, Machines: w.store, Nodes: w.nodes, Provider: w.cloud, Undrained: true}
		w.start()
		var keys []machine.Key
		for i := range n {
			keys = append(keys, w.store.Put(worker(fmt.Sprintf("m%d", i))).Key)
		}
		all := func(rounds int) {
			for range rounds {
				for _, key := range keys {
					w.pass(key)
				}
				<-time.After(time.Minute)
			}
		}
		all(3)
		for _, key := range keys {
			if m := w.live(key); m.Phase != machine.PhaseRunning {
				t.Fatalf("machine %q is %s: %+v", key, m.Phase, m.Step)
			}
		}
		writes, calls := w.store.Writes(), w.cloud.Calls()
		for range 10 {
			if changed, err := w.ctl.Survey(t.Context()); err != nil || len(changed) > 0 {
				t.Errorf("the survey: %v, %v", changed, err)
			}
			all(1)
		}
		calls["List"] += 10
		if diff := cmp.Diff([]any{writes, calls}, []any{w.store.Writes(), w.cloud.Calls()}); diff != "" {
			t.Errorf("R-MA-30: in steady state (-want +got):\n%s", diff)
		}
		for _, key := range keys {
			w.store.Delete(key)
		}
		all(3)
		w.clean()
		// Finalizer, intent, ProviderID, what runs, the end of the finalizer; the Node is started and removed.
		got := map[string]int{}
		for what, times := range w.store.Writes() {
			got[what] = times
		}
		for what, times := range w.nodes.Writes() {
			got[what] = times
		}
		want := map[string]int{"SetFinalizer": 2 * n, "PutStatus": 2 * n, "SetProviderID": n, "StartNode": n, "RemoveNode": n}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("R-MA-30: writes of %d lives (-want +got):\n%s", n, diff)
		}
	})
}
