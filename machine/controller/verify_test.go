// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// reports has the kubelet of a machine say which boot it is, and when it has said it.
func reports(w *world, token, boot string, at time.Time) {
	w.nodes.Edit(token, func(n *machine.Node) { n.Boot, n.Beat = boot, at })
}

// unproven reconciles for ten minutes, and the machine must still wait for a report.
func unproven(t *testing.T, w *world, key machine.Key) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 10*time.Minute; {
		<-time.After(min(max(w.pass(key), time.Second), time.Minute))
	}
	if at := w.live(key); at.Update == nil || at.Step.Name != machine.StepVerifying || !strings.Contains(at.Step.Blocker, "has reported nothing since") {
		t.Fatalf("R-MA-05: the Node has reported nothing since the update, and the machine is at %+v, update %+v", at.Step, at.Update)
	}
}

// R-MA-05: an update in place that changes no version is not over because the Node was ready before it: its kubelet has to report again after the provider was
// done, or from another boot. What the kubelet of before has said meanwhile is no proof, and neither is a cache that is behind.
func TestUpdateNeedsAnotherReport(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, report := range map[string]func(w *world, token string){
		"another boot":       func(w *world, token string) { reports(w, token, "boot-2", first.Add(time.Minute)) }, // the time of the last report before
		"the same boot":      func(w *world, token string) { reports(w, token, "boot-1", first.Add(2*time.Minute)) },
		"a clock set back":   func(w *world, token string) { reports(w, token, "boot-1", first.Add(-time.Hour)) },
		"another registered": func(w *world, token string) { w.nodes.Reregister(token); reports(w, token, "boot-1", first) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.store.Put(worker("a"))
				at, _ := w.running(m.Key)
				reports(w, at.Token, "boot-1", first)
				w.nodes.Freeze()
				w.at = func(int) { // the kubelet of before goes on until it is stopped
					if slices.Contains(w.trace, "Update") && w.live(m.Key).Step.Name != machine.StepVerifying {
						reports(w, at.Token, "boot-1", first.Add(time.Minute))
					}
				}
				w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"b"}`) })
				w.until(m.Key, "verifying", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepVerifying })
				w.at = nil
				w.nodes.Thaw()
				unproven(t, w, m.Key)
				w.start()
				unproven(t, w, m.Key)
				report(w, at.Token)
				w.until(m.Key, "updated", func(m machine.Machine, _ bool) bool { return m.Update == nil && m.Phase == machine.PhaseRunning })
			})
		})
	}
}

// R-MA-05: an update in place whose Node never reports again fails in its time, and keeps its slot: the next machine is not updated in the same way.
func TestUpdateWithoutAnotherReportFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		reports(w, at.Token, "boot-1", time.Unix(1e9, 0))
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"b"}`) })
		w.until(m.Key, "failed", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		if at := w.live(m.Key); at.Failure.Reason != machine.ReasonUpdateTimeout || len(w.budget.held) != 1 {
			t.Errorf("R-MA-05: failure %+v, slots %v", at.Failure, w.budget.held)
		}
	})
}

// A report of other versions is one of after the update: no other one is waited for, and the workload cluster is not asked beyond the cache.
func TestUpdateThatShowsIsProven(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		reports(w, at.Token, "boot-1", time.Unix(1e9, 0))
		report := w.nodes.Version
		w.nodes.Version = func(i provider.Instance) provider.Versions {
			v := report(i)
			v.Other = map[string]string{"os": v.Kubelet}
			return v
		}
		begun := time.Now()
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		if at, _ := w.running(m.Key); at.Versions.Kubelet != "v1.36.2" || time.Since(begun) > time.Minute {
			t.Errorf("it runs %+v after %v", at.Versions, time.Since(begun))
		}
	})
}
