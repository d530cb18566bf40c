// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// The process dies at each of its writes, before and after the API server has carried it out. The next one goes on:
// each pod is evicted once, and nothing is left on a node in the end.
func TestCrashAtEachWrite(t *testing.T) {
	for n := 1; ; n++ {
		crashed := false
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d after=%t", n, after), func(t *testing.T) {
				inWorld(t, func(w *world) { crashed = crashOnce(w, n, after) || crashed })
			})
		}
		if !crashed {
			if n < 8 {
				t.Errorf("a maintenance had %d writes, want at least 8: finalizers, statuses, nodes, evictions", n-1)
			}
			return
		}
	}
}

// crashOnce takes one object through its life, and reports whether the process has died on the way.
func crashOnce(w *world, n int, after bool) (crashed bool) {
	w.nodes("n1", "n2", "n3")
	w.AddWorkload(draintest.Workload{Name: "web", Replicas: 2, On: []string{"n1", "n2"}})
	w.wait(time.Second)
	w.objects.mu.Lock()
	w.objects.writes, w.objects.crash, w.objects.after = 0, n, after
	w.objects.mu.Unlock()
	revive := func() {
		if w.objects.read() != nil {
			crashed = true
			w.start()
		}
	}
	w.create("m", v1alpha1.NodeMaintenanceSpec{NodeSelector: &v1alpha1.NodeSelector{
		MatchExpressions: []v1alpha1.LabelRequirement{{Key: "rack", Operator: "Exists"}},
	}})
	w.UpdateNode("n3", noLabels)
	w.wait(time.Second)
	w.until("Ready", func() bool { revive(); return w.phase("m", v1alpha1.PhaseReady)() }, "m")
	if !w.closed("n1") || !w.closed("n2") || w.closed("n3") {
		w.Errorf("closed: %t, %t, %t, want n1 and n2", w.closed("n1"), w.closed("n2"), w.closed("n3"))
	}
	w.remove("m")
	w.until("gone", func() bool { revive(); return w.gone("m") }, "m")
	for _, name := range []string{"n1", "n2", "n3"} {
		if node := w.LiveNode(name); node.Spec.Unschedulable || node.Annotations[drain.MarkAnnotation] != "" {
			w.Errorf("node %s is not as it was: %+v", name, node)
		}
	}
	return crashed
}
