// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/provider"
)

// settings edits what a machine gives its Node, and passes until it runs so.
func (w *world) settings(key machine.Key, labels map[string]string, taints ...provider.Taint) machine.Node {
	w.t.Helper()
	w.store.Edit(key, func(m *machine.Machine) { m.Spec.Node.Labels, m.Spec.Node.Taints = labels, taints })
	for range 5 {
		<-time.After(max(w.pass(key), time.Minute))
	}
	w.running(key)
	nodes, err := w.nodes.Live(w.t.Context(), w.live(key).Token)
	if err != nil || len(nodes) != 1 {
		w.t.Fatalf("Nodes %v, %v", nodes, err)
	}
	return nodes[0]
}

// R-MA-17: an edit of labels and taints reaches a Node that works, with no call of the provider and nobody disturbed; what has left the spec is taken away;
// what others have changed is theirs, and while nothing changes nothing is written.
func TestSettingsReachTheNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Node.Labels = map[string]string{"pool": "blue", "old": "1"}
		w.store.Put(m)
		first, _ := w.running(m.Key)
		begun := len(w.trace)
		taint := provider.Taint{Key: "dedicated", Effect: "NoSchedule"}
		n := w.settings(m.Key, map[string]string{"pool": "green"}, taint)
		if n.Labels["pool"] != "green" || n.Labels["old"] != "" || !slices.Contains(n.Taints, taint) {
			t.Errorf("R-MA-17: the Node has the labels %v and taints %v", n.Labels, n.Taints)
		}
		for _, call := range w.trace[begun:] {
			if call != "PutStatus" && call != "StartNode" {
				t.Errorf("R-MA-17: %s was called for an edit of labels", call)
			}
		}
		w.nodes.Edit(first.Token, func(n *machine.Node) {
			n.Labels, n.Taints = map[string]string{"pool": "red", "theirs": "1"}, []provider.Taint{{Key: "theirs", Effect: "NoExecute"}}
		})
		writes, status := w.nodes.Writes(), w.store.Writes()
		for range 10 {
			<-time.After(max(w.pass(m.Key), time.Minute))
		}
		if got := w.nodes.Writes(); !maps.Equal(got, writes) || !maps.Equal(w.store.Writes(), status) {
			t.Errorf("R-MA-17: in steady state the writes were %v %v and are %v %v", writes, status, got, w.store.Writes())
		}
		if n = w.settings(m.Key, nil); n.Labels["pool"] != "red" || n.Labels["theirs"] != "1" || len(n.Taints) != 1 {
			t.Errorf("R-MA-17: of others were taken away: labels %v, taints %v", n.Labels, n.Taints)
		}
		if at := w.live(m.Key); at.Incarnation != 1 || at.Digest != at.Spec.Digest() {
			t.Errorf("incarnation %d, digest %s", at.Incarnation, at.Digest)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-17: killed between the record of the edit and the Node, the next controller finishes it; a survey that has the older digest changes nothing.
func TestSettingsSurviveTheController(t *testing.T) {
	for at := range 6 {
		in(t, func(t *testing.T, w *world) {
			m := w.store.Put(worker("a"))
			w.running(m.Key)
			w.kill = w.calls + at
			n := w.settings(m.Key, map[string]string{"pool": "green"})
			if n.Labels["pool"] != "green" {
				t.Errorf("killed at half-call %d of the edit, the labels are %v", at, n.Labels)
			}
			w.kill = -1
			if _, err := w.ctl.Survey(t.Context()); err != nil {
				t.Error(err)
			}
			w.start()
			begun := len(w.trace)
			<-time.After(max(w.pass(m.Key), time.Minute))
			if at := w.live(m.Key); at.Update != nil || slices.Contains(w.trace[begun:], "Plan") {
				t.Errorf("update %+v after %v", at.Update, w.trace[begun:])
			}
		})
	}
}

// R-MA-12 and R-MA-17: a machine whose labels were edited in its life, and that was moved and has lost its status, is neither changed nor replaced: what its
// instance was made with stands with its Node.
func TestSettingsOfAMovedMachine(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.settings(m.Key, map[string]string{"pool": "green"})
		w.settings(m.Key, map[string]string{"pool": "blue"})
		moved := &controllertest.Store{Hook: w.hook}
		again := w.live(m.Key)
		again.UID, again.Status, again.Finalizer = "another", machine.Status{}, false
		moved.Put(again)
		w.store, w.options.Machines = moved, moved
		w.start()
		begun := len(w.trace)
		if at, _ := w.running(m.Key); at.Digest != at.Spec.Digest() || slices.Contains(w.trace[begun:], "Plan") || slices.Contains(w.trace[begun:], "StartNode") {
			t.Errorf("digest %s, calls %v", at.Digest, w.trace[begun:])
		}
	})
}
