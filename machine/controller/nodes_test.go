// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// R-MA-02, R-MA-19 and R-MA-22: a Node that has registered just before its machine ends, and that no cache shows, is drained before the instance is stopped,
// and goes after it.
func TestNodeThatNoCacheShows(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.nodes.Freeze()
		w.until(m.Key, "joining", func(m machine.Machine, _ bool) bool { return m.Instance != nil && m.Step.Name == machine.StepJoining })
		if n := len(w.nodes.All()); n != 1 {
			t.Fatalf("there are %d Nodes, want one that the cache has not", n)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
		drain, stop, remove := slices.Index(w.trace, "Drain"), slices.Index(w.trace, "Stop"), slices.Index(w.trace, "RemoveNode")
		if drain < 0 || stop < drain || remove < stop {
			t.Errorf("Drain is call %d, Stop %d, RemoveNode %d: %v", drain, stop, remove, w.trace)
		}
	})
}

// R-MA-02: a Node that was registered anew behind the cache, under its name and another UID, is not taken for removed.
func TestNodeRegisteredAnewBehindTheCache(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		w.nodes.Freeze()
		w.nodes.Reregister(at.Token)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.OverrideAnnotation: "drain"} })
		w.store.Delete(m.Key)
		for range 5 {
			<-time.After(max(w.pass(m.Key), time.Second))
		}
		if w.live(m.Key).Release.NodeGone {
			t.Error("the Node counts as gone, and is there with another UID")
		}
		w.nodes.Thaw()
		w.gone(m.Key)
		w.clean()
	})
}
