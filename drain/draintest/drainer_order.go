// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/belayproject/belay/drain"
)

// orderCases are about what is done first, and what is done at all.
func orderCases() []drainerCase {
	return []drainerCase{
		{"R-DR-01: the cordon and the holder's mark are one write, before any eviction", func(y *yard) {
			node := y.Node(y.t, "a")
			y.App(y.t, ReplicaSet, "web", 3)
			y.Node(y.t, "b")
			y.reconcile(y.request(node, drain.Drain), phase(drain.Drained))
			y.cordonFirst(node)
			y.empty(node)
		}},
		{"R-DR-03: a budget that never allows is reported with its numbers, and holds nobody else up", neverAllows},
		{"R-DR-08: a maintenance writes the Node at most four times, with three pods", func(y *yard) { fewWrites(y, 3) }},
		{"R-DR-08: a maintenance writes the Node at most four times, with thirty pods", func(y *yard) { fewWrites(y, 30) }},
		{"a pod that lands after the cordon leaves before the node counts as drained", latecomer},
		{"a pod of a StatefulSet that came back elsewhere under its name is left alone", recreatedElsewhere},
		{"a repeat of a drain that is done touches nothing", func(y *yard) {
			node := y.Node(y.t, "a")
			y.Node(y.t, "b")
			r := y.request(node, drain.Drain)
			y.reconcile(r, phase(drain.Drained))
			y.start()
			y.Plot().ClearLog()
			y.reconcile(r, phase(drain.Drained))
			if log := y.Plot().Log(); len(log) > 0 {
				y.errorf("got %v, want no request", log)
			}
		}},
	}
}

// cordonFirst checks R-DR-01 in the log.
func (y *yard) cordonFirst(node string) {
	y.t.Helper()
	log := y.Plot().Log(PatchNode)
	if len(log) == 0 {
		y.fatalf("got no write to node %s, want the cordon", node)
	}
	var patch corev1.Node
	if err := json.Unmarshal([]byte(log[0].Patch), &patch); err != nil {
		y.fatalf("patch %s: %v", log[0].Patch, err)
	}
	mark := patch.Annotations[drain.MarkAnnotation]
	if !patch.Spec.Unschedulable || !strings.Contains(mark, "suite/a") || patch.ResourceVersion == "" {
		y.errorf("first write: got %s, want the cordon and the mark of suite/a, guarded by a resourceVersion", log[0].Patch)
	}
	for _, call := range y.Plot().Log(Evict, Delete) {
		if call.Started.Before(log[0].Answered) {
			y.errorf("got %v, started %v before the cordon was answered", call, log[0].Answered.Sub(call.Started))
		}
	}
}

func neverAllows(y *yard) {
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "rigid", 1)
	y.App(y.t, ReplicaSet, "web", 3)
	y.Budget(y.t, MinAvailable(y.Namespace(), "rigid", "1", map[string]string{"app": "rigid"}))
	y.Node(y.t, "b")
	r := y.request(node, drain.Drain)
	st := y.reconcile(r, func(st drain.Status) bool {
		return st.Counts.Remaining == 1 && len(st.Blockers) == 1 && st.Counts.Blocked == 1
	})
	b := st.Blockers[0]
	if b.Reason != drain.BudgetNeverAllows || !strings.HasPrefix(b.Name, "rigid-") || fmt.Sprint(b.Budgets) != "[rigid]" || b.UID == "" {
		y.errorf("blocker: got %+v, want a pod of rigid under the budget rigid, for BudgetNeverAllows", b)
	}
	if !strings.Contains(b.Message, "1") || !strings.Contains(b.Message, "rigid") {
		y.errorf("message: got %q, want the budget and its numbers", b.Message)
	}
	if b.Since.IsZero() || b.Since.After(time.Now()) {
		y.errorf("since: got %v, want when it was first seen", b.Since)
	}
	asked := 0
	for _, call := range y.Plot().Log(Evict) {
		if call.UID != b.UID {
			continue
		}
		asked++
		if call.Wrote {
			y.errorf("got %v, want the pod to stay", call)
		}
	}
	if asked == 0 {
		y.errorf("evictions of the pod: got none, want it asked all the same, as operators take one for a signal")
	}
	y.onlyPlanned(node)
	y.release(r)
	y.clean(node)
}

func fewWrites(y *yard, pods int) {
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "web", pods)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "web", "30%", web()))
	y.Node(y.t, "b")
	r := y.request(node, drain.Drain)
	y.reconcile(r, phase(drain.Drained))
	y.release(r)
	if n := y.writes(node); n > 4 {
		y.errorf("writes to node %s: got %d, want at most 4", node, n)
	}
	y.onlyPlanned(node)
	y.clean(node)
}

func latecomer(y *yard) {
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "web", 1)
	y.Node(y.t, "b")
	r := y.request(node, drain.Drain)
	reachSettling(y, &r)
	late := NewPod(y.Namespace(), "late", node)
	y.Pod(y.t, late)
	r.Policy.Unmanaged = drain.EvictPods
	st := y.reconcile(r, phase(drain.Drained))
	y.empty(node)
	if st.Counts.Evicted < 2 {
		y.errorf("evicted: got %d, want the pod that came late too", st.Counts.Evicted)
	}
	y.onlyPlanned(node)
}

func recreatedElsewhere(y *yard) {
	node := y.Node(y.t, "a")
	y.App(y.t, StatefulSet, "db", 1)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "db", "0", map[string]string{"app": "db"}))
	other := y.Node(y.t, "b")
	r := y.request(node, drain.Drain)
	y.reconcile(r, blocked(drain.BudgetNeverAllows))
	y.DeletePod(y.t, "db-0")
	y.eventually("db-0 on the other node", func() error {
		for _, pod := range y.GetPods(y.t, other) {
			if pod.Name == "db-0" && isReady(pod) {
				return nil
			}
		}
		return fmt.Errorf("got no ready db-0 on %s", other)
	})
	y.ChangeBudget(y.t, "db", func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable.IntVal = 1 })
	y.reconcile(r, phase(drain.Drained))
	for _, call := range y.Plot().Log(Evict) {
		if call.Wrote {
			y.errorf("got %v, want no eviction: the pod had left", call)
		}
	}
	for _, pod := range y.GetPods(y.t, other) {
		if pod.DeletionTimestamp != nil {
			y.errorf("pod %s on %s: got it being deleted, want it left alone", pod.Name, other)
		}
	}
	y.onlyPlanned(node)
}
