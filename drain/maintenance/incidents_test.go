// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// What users of operators with such an object have reported in public, rebuilt in small.

// https://github.com/kubevirt/node-maintenance-operator/issues/33: a maintenance of a Node that does not exist could
// not be deleted.
func TestNodeThatDoesNotExist(t *testing.T) {
	inWorld(t, func(w *world) {
		w.create("m", named("n9"))
		w.until("Blocked", w.phase("m", v1alpha1.PhaseBlocked), "m")
		w.checkConditions("m", "FFT")
		if st := w.object("m").Status; st.Nodes[0].Reason != string(drain.NodeNotFound) || st.FailedNodes != 1 {
			t.Errorf("status %+v, want it to name the Node that is missing", st)
		}
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
		w.create("later", named("n9"))
		w.until("Blocked", w.phase("later", v1alpha1.PhaseBlocked), "later")
		w.nodes("n9")
		w.until("Ready once the Node is there", w.phase("later", v1alpha1.PhaseReady), "later")
	})
}

// The same report: a Node that was deleted in maintenance kept the object. And kured's and Brupop's shape of it: a
// node that comes back under its name is not taken for the one before, nor left open.
func TestNodeThatVanishesAndComesBack(t *testing.T) {
	for _, at := range []v1alpha1.Phase{v1alpha1.PhaseRunning, v1alpha1.PhaseReady} {
		t.Run(string(at), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.nodes("n1", "n2")
				w.AddWorkload(draintest.Workload{Name: "db", Replicas: 1, On: []string{"n1"}})
				if at == v1alpha1.PhaseRunning {
					w.AddBudget(draintest.MinAvailable("default", "db", "1", map[string]string{"app": "db"}))
				}
				w.wait(time.Second)
				w.create("m", named("n1"))
				w.until("closed", func() bool {
					return w.closed("n1") && (at != v1alpha1.PhaseReady || w.phase("m", at)())
				}, "m")
				w.DeleteNode("n1")
				w.wait(time.Minute)
				w.pass("m")
				w.nodes("n1")
				w.until("the new node is Ready", func() bool {
					return w.closed("n1") && w.phase("m", v1alpha1.PhaseReady)()
				}, "m")
				w.DeleteNode("n1")
				w.wait(time.Minute)
				w.remove("m")
				w.until("gone", func() bool { return w.gone("m") }, "m")
			})
		})
	}
}

// Deleting the object in the middle of a drain ends it: no eviction starts, and the node is open.
func TestDeleteWhileDraining(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "db", Replicas: 2, On: []string{"n1", "n1"}})
		w.AddBudget(draintest.MinAvailable("default", "db", "2", map[string]string{"app": "db"}))
		w.wait(time.Second)
		w.create("m", named("n1"))
		w.until("closed", func() bool { return w.closed("n1") }, "m")
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
		w.ClearLog()
		w.wait(10 * time.Minute)
		w.pass("m")
		if w.closed("n1") || len(w.Cluster.Log(draintest.Evict)) > 0 {
			t.Errorf("closed %t, evictions %v after the object has gone", w.closed("n1"), w.Cluster.Log(draintest.Evict))
		}
	})
}

// https://github.com/medik8s/node-maintenance-operator/pull/163: where another finalizer keeps the object, the pass
// after the release cordoned the node again.
func TestReleasedObjectThatStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1")
		w.create("m", named("n1"))
		w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Finalizers = []string{"example.com/audit"} })
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		w.remove("m")
		w.until("released", func() bool { return len(w.object("m").Finalizers) == 1 }, "m")
		for range 5 {
			w.pass("m")
			w.wait(time.Minute)
		}
		if w.closed("n1") {
			t.Error("the node was cordoned again")
		}
	})
}

// A person takes the finalizer off by hand, as answers to stuck objects advise: the node is given back all the same,
// by the same process and by the next.
func TestFinalizerRemovedByHand(t *testing.T) {
	for _, restart := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.nodes("n1", "n2")
			w.create("other", v1alpha1.NodeMaintenanceSpec{NodeName: "n2", Mode: "Cordon"})
			w.create("m", named("n1"))
			w.until("Ready", func() bool {
				return w.phase("m", v1alpha1.PhaseReady)() && w.phase("other", v1alpha1.PhaseReady)()
			}, "m", "other")
			w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Finalizers = nil })
			w.remove("m")
			if restart {
				w.start()
			}
			w.until("open", func() bool { return !w.closed("n1") }, "m")
			if !w.closed("n2") {
				t.Error("the node of an object that exists was opened")
			}
		})
	}
}

// https://github.com/kubevirt/node-maintenance-operator/issues/46: a node that a person uncordons in maintenance was
// still reported as in maintenance. Here the drain pauses, and the status says what a person has to do.
func TestUncordonedByAPerson(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "db", Replicas: 1, On: []string{"n1"}})
		w.AddBudget(draintest.MinAvailable("default", "db", "1", map[string]string{"app": "db"}))
		w.wait(time.Second)
		w.create("m", named("n1"))
		w.until("closed", func() bool { return w.closed("n1") }, "m")
		w.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		w.until("UncordonedByOther", func() bool {
			st := w.object("m").Status
			return len(st.Nodes) > 0 && st.Nodes[0].Reason == string(drain.UncordonedByOther)
		}, "m")
		w.checkConditions("m", "FFT")
	})
}

// An object that is deleted while nothing was written to its node goes at once, whatever its policy.
func TestDeleteOfAnInvalidObject(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1")
		w.create("m", named("n1"))
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Spec.Policy = &drain.Policy{Soak: time.Minute} })
		w.until("Invalid", w.phase("m", v1alpha1.PhaseInvalid), "m")
		if !w.closed("n1") {
			t.Error("an edit that is wrong has opened the node")
		}
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") && !w.closed("n1") }, "m")
	})
}
