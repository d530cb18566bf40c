// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// A maintenance empties its node and is Ready; deleting it opens the node, and the finalizer goes last.
func TestDrainsAndGivesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "web", Replicas: 3, On: []string{"n1", "n1", "n1"}})
		w.wait(time.Second)
		w.create("m", named("n1"))
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		o := w.object("m")
		if !w.closed("n1") || len(w.LivePods("n1")) > 0 || !slices.Contains(o.Finalizers, v1alpha1.Finalizer) {
			t.Errorf("closed %t, %d pods, finalizers %v", w.closed("n1"), len(w.LivePods("n1")), o.Finalizers)
		}
		st := o.Status
		if st.TotalNodes != 1 || st.ReadyNodes != 1 || st.Nodes[0].Evicted != 3 || st.ObservedGeneration != 1 {
			t.Errorf("status %+v, want one ready node with 3 evictions", st)
		}
		w.checkConditions("m", "TFF")
		before := o.ResourceVersion
		for range 5 {
			w.pass("m")
			w.wait(time.Minute)
		}
		if now := w.object("m").ResourceVersion; now != before {
			t.Errorf("an idle maintenance was written: version %s, then %s", before, now)
		}
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
		if n := w.LiveNode("n1"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
			t.Errorf("node after its return: %+v", n)
		}
	})
}

// A node that a person had cordoned before stays cordoned.
func TestGivesBackAsFound(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1")
		w.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		w.wait(time.Second)
		w.create("m", named("n1"))
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
		if !w.closed("n1") {
			t.Error("the person's cordon was taken off")
		}
	})
}

// Two objects on one node are two holders: the node is open when both have gone.
func TestTwoObjectsOnOneNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1")
		w.create("disk", v1alpha1.NodeMaintenanceSpec{NodeName: "n1", Mode: "Cordon"})
		w.create("kernel", named("n1"))
		w.until("both Ready", func() bool {
			return w.phase("disk", v1alpha1.PhaseReady)() && w.phase("kernel", v1alpha1.PhaseReady)()
		}, "disk", "kernel")
		w.remove("kernel")
		w.until("one gone", func() bool { return w.gone("kernel") }, "kernel", "disk")
		if !w.closed("n1") {
			t.Error("the node was opened while another object holds it")
		}
		w.remove("disk")
		w.until("both gone", func() bool { return w.gone("disk") }, "disk")
		if w.closed("n1") {
			t.Error("the node stays closed after the last object")
		}
	})
}

// A selector is worked off with maxConcurrent nodes at a time, takes in a Node that comes, and gives back one that
// leaves.
func TestSelector(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2", "n3")
		w.AddNode("other")
		for _, n := range []string{"n1", "n2", "n3"} {
			w.AddWorkload(draintest.Workload{Name: "web-" + n, Replicas: 2, On: []string{n, n}})
		}
		w.wait(time.Second)
		one := intstr.FromInt32(1)
		w.create("m", v1alpha1.NodeMaintenanceSpec{NodeSelector: rack(), MaxConcurrent: &one})
		most := 0
		w.until("Ready", func() bool {
			draining := 0
			for _, n := range w.object("m").Status.Nodes {
				if n.Phase == string(drain.Draining) || n.Phase == string(drain.Settling) {
					draining++
				}
			}
			most = max(most, draining)
			return w.phase("m", v1alpha1.PhaseReady)()
		}, "m")
		if most != 1 || w.closed("other") || w.object("m").Status.ReadyNodes != 3 {
			t.Errorf("%d nodes drained at a time, status %+v", most, w.object("m").Status)
		}
		w.nodes("n4")
		w.until("n4 Ready", func() bool { return w.object("m").Status.ReadyNodes == 4 }, "m")
		w.UpdateNode("n2", func(n *corev1.Node) { n.Labels = nil })
		w.until("n2 open", func() bool { return !w.closed("n2") && w.object("m").Status.TotalNodes == 3 }, "m")
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
		for _, n := range []string{"n1", "n2", "n3", "n4"} {
			if w.closed(n) {
				t.Errorf("node %s stays closed", n)
			}
		}
	})
}

// Before its window nothing is written to the node; the preview says what would leave, what is blocked and by what.
func TestWindowAndPreview(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "web", Replicas: 2, On: []string{"n1", "n1"}})
		w.AddWorkload(draintest.Workload{Name: "db", Replicas: 1, On: []string{"n1"}})
		w.AddWorkload(draintest.Workload{Name: "agent", Kind: draintest.DaemonSet})
		w.AddBudget(draintest.MinAvailable("default", "db", "1", map[string]string{"app": "db"}))
		w.wait(time.Second)
		opens := metav1.NewTime(time.Now().Add(2 * time.Hour))
		spec := named("n1")
		spec.Windows = []v1alpha1.Window{{From: &opens}}
		w.create("m", spec)
		before := w.LiveNode("n1").ResourceVersion
		for range 10 {
			w.pass("m")
			w.wait(10 * time.Minute)
		}
		if now := w.LiveNode("n1"); now.ResourceVersion != before {
			t.Errorf("the node was written before the window: %+v", now)
		}
		st := w.object("m").Status
		if p := st.Preview; p == nil || p.Evictions != 2 || p.Blocked != 1 || p.Stays != 1 || len(p.BlockedPods) != 1 ||
			p.BlockedPods[0].Reason != string(drain.BudgetNeverAllows) {
			t.Errorf("preview %+v, want 2 evictions, 1 blocked by its budget, 1 that stays", p)
		}
		if st.Phase != v1alpha1.PhaseWaiting || len(w.object("m").Finalizers) > 0 {
			t.Errorf("phase %s: %s, finalizers %v, want Waiting without one", st.Phase, st.Message, w.object("m").Finalizers)
		}
		w.checkConditions("m", "FTF")
		w.until("Blocked", w.phase("m", v1alpha1.PhaseBlocked), "m")
		w.checkConditions("m", "FFT")
		w.DeleteBudget("default", "db")
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
	})
}

// At the deadline the drain stops and says so: nothing more is evicted, nothing is deleted, the cordon stays.
func TestDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "db", Replicas: 1, On: []string{"n1"}})
		w.AddBudget(draintest.MinAvailable("default", "db", "1", map[string]string{"app": "db"}))
		w.wait(time.Second)
		end := metav1.NewTime(time.Now().Add(10 * time.Minute))
		spec := named("n1")
		spec.Deadline = &end
		w.create("m", spec)
		w.until("Stopped", w.phase("m", v1alpha1.PhaseStopped), "m")
		w.checkConditions("m", "FFT")
		calls := len(w.Cluster.Log(draintest.Evict, draintest.Delete))
		for range 30 {
			w.pass("m")
			w.wait(time.Minute)
		}
		now := len(w.Cluster.Log(draintest.Evict, draintest.Delete))
		if now != calls || len(w.LivePods("n1")) != 1 || !w.closed("n1") {
			t.Errorf("%d requests after the deadline, %d pods, closed %t", now-calls, len(w.LivePods("n1")), w.closed("n1"))
		}
		w.DeleteBudget("default", "db")
		later := metav1.NewTime(time.Now().Add(20 * time.Minute))
		w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Spec.Deadline = &later })
		w.until("Ready with another deadline", w.phase("m", v1alpha1.PhaseReady), "m")
	})
}

// A hold keeps the pods and renews the Lease up to the deadline; one that is too long is refused with words.
func TestHold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1")
		w.AddWorkload(draintest.Workload{Name: "web", Replicas: 1, On: []string{"n1"}})
		w.wait(time.Second)
		long, short := metav1.NewTime(time.Now().Add(5*time.Hour)), metav1.NewTime(time.Now().Add(20*time.Minute))
		w.create("m", v1alpha1.NodeMaintenanceSpec{NodeName: "n1", Mode: "Hold", Deadline: &long})
		w.until("Invalid", w.phase("m", v1alpha1.PhaseInvalid), "m")
		if w.closed("n1") {
			t.Error("a hold that is too long has closed the node")
		}
		w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Spec.Deadline = &short })
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		if !w.closed("n1") || len(w.LivePods("n1")) != 1 {
			t.Errorf("closed %t, %d pods, want a closed node with its pod", w.closed("n1"), len(w.LivePods("n1")))
		}
		w.until("Stopped", w.phase("m", v1alpha1.PhaseStopped), "m")
		w.remove("m")
		w.until("gone", func() bool { return w.gone("m") }, "m")
	})
}

// A cordon becomes a drain.
func TestCordonThenDrain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.nodes("n1", "n2")
		w.AddWorkload(draintest.Workload{Name: "web", Replicas: 2, On: []string{"n1", "n1"}})
		w.wait(time.Second)
		w.create("m", v1alpha1.NodeMaintenanceSpec{NodeName: "n1", Mode: "Cordon"})
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		if len(w.LivePods("n1")) != 2 {
			t.Error("a cordon has moved pods")
		}
		w.edit("m", func(o *v1alpha1.NodeMaintenance) { o.Spec.Mode = "Drain" })
		w.until("drained", func() bool {
			return w.object("m").Status.ObservedGeneration == 2 && w.phase("m", v1alpha1.PhaseReady)()
		}, "m")
		if len(w.LivePods("n1")) != 0 {
			t.Error("the pods have not left")
		}
	})
}

// What the API server lets through and can't be done is said in the status, and nothing is written to the node.
func TestInvalidSpecs(t *testing.T) {
	for name, policy := range map[string]drain.Policy{
		"escalation":  {Escalation: []drain.Escalation{{Step: "Kill", After: time.Minute}}},
		"soak":        {Soak: time.Minute},
		"two windows": {Windows: []drain.Window{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.nodes("n1")
				spec := named("n1")
				spec.Policy = &policy
				w.create("m", spec)
				w.until("Invalid", w.phase("m", v1alpha1.PhaseInvalid), "m")
				w.checkConditions("m", "FFT")
				if w.closed("n1") || w.object("m").Status.Message == "" {
					t.Errorf("closed %t, message %q", w.closed("n1"), w.object("m").Status.Message)
				}
			})
		})
	}
}

// The status lists 100 nodes and counts all.
func TestManyNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 130 {
			w.AddNode(fmt.Sprintf("n%03d", i), func(n *corev1.Node) { n.Labels = map[string]string{"rack": "r1"} })
		}
		w.wait(time.Second)
		all := intstr.FromString("100%")
		w.create("m", v1alpha1.NodeMaintenanceSpec{NodeSelector: rack(), MaxConcurrent: &all})
		w.until("Ready", w.phase("m", v1alpha1.PhaseReady), "m")
		if st := w.object("m").Status; st.TotalNodes != 130 || st.ReadyNodes != 130 || len(st.Nodes) != 100 {
			t.Errorf("total %d, ready %d, listed %d, want 130, 130, 100", st.TotalNodes, st.ReadyNodes, len(st.Nodes))
		}
	})
}
