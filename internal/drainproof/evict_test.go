// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/drain"
)

// TestCordonAndMarkComeInOneWriteBeforeTheFirstEviction reads the order from the audit log. R-DR-01
func TestCordonAndMarkComeInOneWriteBeforeTheFirstEviction(t *testing.T) {
	c := newCluster(t)
	a, b := c.mustNode(t, "a", workRole), c.mustNode(t, "b", workRole)
	nodeOf := map[types.UID]string{}
	for i, node := range []*corev1.Node{a, b, a, b, a} {
		nodeOf[c.mustPod(t, fmt.Sprintf("pod-%d", i), "plain", node.Name).UID] = node.Name
	}
	c.settled(t, 5)
	user := c.name + "-drainer"
	maintain(t, mustConnect(t, c.asDrainer(t, user), nil), setOf(user, drain.Drain, a.Name, b.Name), drain.Drained)

	closed := map[string]time.Time{}
	for _, e := range audited(t, user) {
		switch {
		case e.isNodeWrite():
			patch, err := e.nodePatch()
			must(t, err)
			if _, seen := closed[e.ObjectRef.Name]; seen {
				continue
			}
			if patch.Metadata.Annotations[drain.MarkAnnotation] == "" || patch.Spec.Unschedulable == nil || !*patch.Spec.Unschedulable {
				t.Errorf("the first write to node %q is %s, want mark and cordon in it", e.ObjectRef.Name, e.RequestObject)
			}
			closed[e.ObjectRef.Name] = e.StageTimestamp
		case e.isEviction():
			uid, err := e.target()
			must(t, err)
			at, ok := closed[nodeOf[uid]]
			if !ok || e.RequestReceivedTimestamp.Before(at) {
				t.Errorf("%s: a pod of node %q is evicted before that is closed (at %s)", e, nodeOf[uid], at)
			}
			delete(nodeOf, uid)
		default:
			t.Errorf("%s: want nothing but patches of nodes and evictions", e)
		}
	}
	if len(nodeOf) > 0 || len(closed) != 2 {
		t.Errorf("%d nodes were closed and %d pods were not evicted, want 2 and 0", len(closed), len(nodeOf))
	}
}

// TestBudgetIsNeverBroken drains every node of an app at once, with the real controllers behind its budget. R-DR-02
func TestBudgetIsNeverBroken(t *testing.T) {
	c := newCluster(t)
	var nodes []string
	for _, n := range []string{"a", "b", "c"} {
		nodes = append(nodes, c.mustNode(t, n, workRole).Name)
	}
	c.mustNode(t, "spare", spareRole)
	must(t, c.app(t.Context(), "web", 2, nodes...))
	lowest := c.watchHealth(t, "web")
	user := c.name + "-drainer"
	maintain(t, mustConnect(t, c.asDrainer(t, user), nil), setOf(user, drain.Drain, nodes...), drain.Drained)
	must(t, c.healthy(t.Context(), "web", 3))

	if budget, pods := lowest(); budget < 2 || pods < 2 {
		t.Errorf("the budget counted at least %d healthy pods, and %d were ready, want at least 2", budget, pods)
	}
	events := audited(t, user)
	if _, accepted := evictions(t, events); len(accepted) != 3 {
		t.Errorf("%d pods were evicted, want 3:%s", len(accepted), describe(events))
	}
	for _, e := range events {
		if strings.HasPrefix(e.Verb, "delete") {
			t.Errorf("%s: want no deletion", e)
		}
	}
}

// watchHealth follows an app, every change of which the server sends. The returned function ends that, and gives the least number of
// healthy pods that the budget's status had, and that were ready and not ending.
func (c *cluster) watchHealth(t *testing.T, app string) (lowest func() (budget, pods int)) {
	t.Helper()
	budgets, err := c.api.PolicyV1().PodDisruptionBudgets(c.namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + app})
	must(t, err)
	pods, err := c.api.CoreV1().Pods(c.namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	must(t, err)
	result := make(chan int, 2)
	go func() { result <- follow(budgets, budgetHealth) }()
	least := make(chan int, 1)
	go func() { least <- follow(pods, podHealth(map[types.UID]bool{})) }()
	return func() (int, int) { budgets.Stop(); pods.Stop(); return <-result, <-least }
}

// follow gives the least that health has said, once it has risen to 3.
func follow(w watch.Interface, health func(watch.Event) int) int {
	least, risen := 3, false
	for e := range w.ResultChan() {
		if e.Type == watch.Error || e.Type == watch.Bookmark {
			continue
		}
		n := health(e)
		risen = risen || n == 3
		if risen {
			least = min(least, n)
		}
	}
	if !risen {
		return 0
	}
	return least
}

func budgetHealth(e watch.Event) int {
	b, ok := e.Object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return 0
	}
	return int(b.Status.CurrentHealthy)
}

func podHealth(healthy map[types.UID]bool) func(watch.Event) int {
	return func(e watch.Event) int {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			delete(healthy, pod.UID)
			if e.Type != watch.Deleted && pod.DeletionTimestamp == nil && isReady(pod) {
				healthy[pod.UID] = true
			}
		}
		return len(healthy)
	}
}

// TestPodThatMayNotLeaveIsNamedAtOnce has a pod whose budget never allows, and one whose budget allows as soon as another pod is
// ready. R-DR-03
func TestPodThatMayNotLeaveIsNamedAtOnce(t *testing.T) {
	c := newCluster(t)
	a, spare := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "spare", spareRole).Name
	must(t, c.budget(t.Context(), "only", "only", 1))
	must(t, c.budget(t.Context(), "pair", "pair", 1))
	c.mustPod(t, "only", "only", a)
	c.mustPod(t, "pair-0", "pair", a)
	c.mustPod(t, "pair-1", "pair", spare, func(p *corev1.Pod) { p.Labels[unreadyLabel] = "yes" })
	for i := range 3 {
		c.mustPod(t, fmt.Sprintf("plain-%d", i), "plain", a)
	}
	c.settled(t, 6)
	must(t, c.healthy(t.Context(), "only", 1))
	must(t, c.healthy(t.Context(), "pair", 1))
	user := c.name + "-drainer"
	d := mustConnect(t, c.asDrainer(t, user), nil)
	begun := time.Now()
	run := start(t, d, setOf(user, drain.Drain, a))

	run.reconciled(t, "the others leave", func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && s.Nodes[0].Counts.Remaining == 2 })
	explained(t, run, begun)
	must(t, c.makeReady(t.Context(), "pair-1"))
	run.reconciled(t, "a pod leaves when its budget allows it", func(s drain.SetStatus) bool { return s.Nodes[0].Counts.Remaining == 1 })
	if n := run.last().Nodes[0]; n.Outcome != drain.OutcomeBlocked || n.Reason != drain.BudgetNeverAllows {
		t.Errorf("got outcome %q for reason %q, want %q for %q", n.Outcome, n.Reason, drain.OutcomeBlocked, drain.BudgetNeverAllows)
	}
	all, accepted := evictions(t, audited(t, user))
	// A pod whose budget never allows is asked at once, one whose budget allows none for now after 10 s; then twice as
	// late each time.
	most := 4 + 2*(2+int(time.Since(begun)/(10*time.Second)))
	if len(all) <= 4 || len(all) > most || len(accepted) != 4 {
		t.Errorf("%d evictions were asked for and %d accepted, want 5 to %d and 4:%s", len(all), len(accepted), most, describe(all))
	}
}

// explained checks that every report says why two pods stay, and since when: a time between the begin of the drain and the arrival of the first report.
// Nothing is said of how long that is, which is up to the machine.
func explained(t *testing.T, run *running, begun time.Time) {
	t.Helper()
	since, heard := map[string]time.Time{}, run.heard()
	for i, s := range run.all() {
		for _, b := range []drain.Blocker{
			checkBlocker(t, i, s.Nodes[0], "only", drain.Block, drain.BudgetNeverAllows),
			checkBlocker(t, i, s.Nodes[0], "pair-0", drain.Wait, drain.BudgetExhausted),
		} {
			if i == 0 {
				since[b.Name] = b.Since
			}
			if first := since[b.Name]; !b.Since.Equal(first) || first.Before(begun) || first.After(heard) {
				t.Errorf("report %d: pod %q is blocked since %s, want %s as in the first report, which is from %s to %s", i, b.Name, b.Since, first, begun, heard)
			}
		}
	}
}

// checkBlocker looks for a pod in a report, and that it stays explained from the first one on, and returns what is said of it.
func checkBlocker(t *testing.T, report int, n drain.Status, pod string, action drain.Action, reason drain.Reason) drain.Blocker {
	t.Helper()
	i := slices.IndexFunc(n.Blockers, func(b drain.Blocker) bool { return b.Name == pod })
	if i < 0 {
		t.Fatalf("report %d does not name pod %q: %+v", report, pod, n)
	}
	b := n.Blockers[i]
	budget, _, _ := strings.Cut(pod, "-")
	if b.Action != action || b.Reason != reason || !slices.Equal(b.Budgets, []string{budget}) || b.UID == "" {
		t.Errorf("report %d: got %+v, want %s for %s of budget %q", report, b, action, reason, budget)
	}
	if !strings.Contains(b.Message, "1 of ") || !strings.Contains(b.Message, "1 needed") {
		t.Errorf("report %d: message %q does not say how many pods are healthy and needed", report, b.Message)
	}
	return b
}

// makeReady turns a pod ready.
func (c *cluster) makeReady(ctx context.Context, name string) error {
	pod, err := c.api.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionTrue
		}
	}
	_, err = c.api.CoreV1().Pods(c.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
