// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/raceshare"
)

// What holds for every plan, whatever the cluster and the policy (R-DR-02, R-DR-03, R-DR-12, R-DR-20).
func FuzzPlan(f *testing.F) {
	for seed := range raceshare.Of(f, uint64(400)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := randomPlanCase(seed)
		before := c.copy()
		result := c.plan()
		if !reflect.DeepEqual(before, c.copy()) {
			t.Error("the plan has changed its input")
		}
		c.checkEntries(t, result)
		c.checkBudgets(t, result)
		c.checkOrder(t, result)
		c.checkTime(t, result)
		c.checkRepeat(t, result, seed)
	})
}

// planInput is all that a plan reads, as values.
type planInput struct {
	nodes   []corev1.Node
	pods    []corev1.Pod
	budgets []policyv1.PodDisruptionBudget
	rest    string
}

func (c *planCase) copy() planInput {
	var in planInput
	for _, n := range c.Nodes {
		in.nodes = append(in.nodes, *n.Node.DeepCopy())
		for _, p := range n.Pods {
			in.pods = append(in.pods, *p.DeepCopy())
		}
		in.rest += fmt.Sprint(n.Started, n.Bounces, n.Hooks, n.Attempts, n.Asked, n.Acted, n.PoweredOff)
	}
	for _, b := range c.Budgets {
		in.budgets = append(in.budgets, *b.DeepCopy())
	}
	in.rest += fmt.Sprint(c.Spent, c.Stuck, c.DaemonSets, c.Claims, c.Volumes)
	return in
}

// checkEntries: each pod once, in order, with an action, a reason and a step that go together, and counted.
func (c *planCase) checkEntries(t *testing.T, r drain.Result) {
	t.Helper()
	for i, n := range r.Nodes {
		seen := map[types.UID]bool{}
		var counts drain.Counts
		for j, p := range n.Pods {
			seen[p.UID] = true
			if j > 0 && n.Pods[j-1].Tier > p.Tier {
				t.Errorf("pod %q of tier %d comes after tier %d", p.Name, p.Tier, n.Pods[j-1].Tier)
			}
			checkEntry(t, p)
			countEntry(&counts, p)
		}
		if len(seen) != len(c.Nodes[i].Pods) || len(n.Pods) != len(seen) {
			t.Errorf("node %q: got %d entries for %d pods, want one for each", n.Node, len(n.Pods), len(c.Nodes[i].Pods))
		}
		if n.Counts != counts {
			t.Errorf("node %q: got counts %+v, want %+v", n.Node, n.Counts, counts)
		}
	}
}

func countEntry(c *drain.Counts, p drain.PodPlan) {
	if p.Action == drain.Skip {
		c.Skipped++
		*map[drain.Reason]*int{"MirrorPod": &c.Static, "Terminal": &c.Finished, "DaemonSetPod": &c.DaemonSet,
			"ToleratesCordon": &c.Tolerating, "Bounced": &c.Tolerating, "SkippedByRule": &c.ByRule}[p.Reason]++
		return
	}
	c.Remaining++
	switch {
	case p.Action == drain.Evict:
		c.Evictable++
	case p.Action == drain.Block:
		c.Blocked++
	case p.Reason == drain.Terminating:
		c.Terminating++
	default:
		c.Waiting++
	}
}

func checkEntry(t *testing.T, p drain.PodPlan) {
	t.Helper()
	leaves := p.Action == drain.Evict
	asked := p.Step == drain.StepEvict && (p.Action == drain.Block || p.Action == drain.Wait) && len(p.Budgets) > 0
	if (leaves || asked) != (p.Step != "") || leaves != (p.Reason == "") || leaves != (p.Message == "") {
		t.Errorf("pod %q: got %s with reason %q, message %q, step %q", p.Name, p.Action, p.Reason, p.Message, p.Step)
	}
	if (p.Action == drain.Hook) != (p.Hook != "") || (p.Action == drain.Hook) != (p.HookSilence > 0) {
		t.Errorf("pod %q: got %s with responder %q, silence %s", p.Name, p.Action, p.Hook, p.HookSilence)
	}
	if p.GracePeriodSeconds != nil && *p.GracePeriodSeconds < 1 {
		t.Errorf("pod %q: got a grace period of %d s", p.Name, *p.GracePeriodSeconds)
	}
	if (p.Next == "") != p.NextAt.IsZero() || p.Action == drain.Skip && p.Next != "" {
		t.Errorf("pod %q: got %s, next %q at %v", p.Name, p.Action, p.Next, p.NextAt)
	}
}

// A modelBudget is the server's side of an eviction, as its source has it, apart from the plan's own code.
type modelBudget struct {
	policyv1.PodDisruptionBudget
}

// admits asks as the server does, and spends.
func (b *modelBudget) admits(pod *corev1.Pod) (ok, spent bool) {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	if !ready {
		if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
			return true, false
		}
		if b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0 {
			return true, false
		}
	}
	if b.Status.ObservedGeneration < b.Generation || b.Status.DisruptionsAllowed <= 0 || len(b.Status.DisruptedPods) > 2000 {
		return false, false
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod.Name] = metav1.Time{}
	return true, true
}

// checkBudgets replays the plan on a model of the server: what leaves is admitted, all of it; what waits for a budget alone is refused.
func (c *planCase) checkBudgets(t *testing.T, r drain.Result) {
	t.Helper()
	model, pods := c.model(), map[types.UID]*corev1.Pod{}
	for _, n := range c.Nodes {
		for _, p := range n.Pods {
			pods[p.UID] = p
		}
	}
	for _, p := range entries(r) {
		if p.Action == drain.Evict && p.Step == drain.StepEvict {
			c.replay(t, model, pods[p.UID], p, true)
		}
	}
	for _, p := range entries(r) {
		if c.heldByBudget(p) {
			c.replay(t, model, pods[p.UID], p, false)
		}
	}
}

func entries(r drain.Result) []drain.PodPlan {
	var all []drain.PodPlan
	for _, n := range r.Nodes {
		all = append(all, n.Pods...)
	}
	return all
}

// heldByBudget reports whether a pod stays for its budget alone: neither for an answer nor for a window.
func (c *planCase) heldByBudget(p drain.PodPlan) bool {
	if !c.open() || slices.ContainsFunc(c.Nodes, func(v drain.NodeView) bool { _, ok := v.Attempts[p.UID]; return ok }) {
		return false
	}
	switch p.Reason {
	case drain.BudgetExhausted, drain.BudgetStale, drain.BudgetNeverAllows, "UnhealthyProtected":
		return true
	}
	return false
}

func (c *planCase) open() bool {
	return len(c.policy.Windows) == 0 || slices.ContainsFunc(c.policy.Windows, func(w drain.Window) bool {
		return !c.now.Before(w.From) && (w.Until.IsZero() || c.now.Before(w.Until))
	})
}

func (c *planCase) model() []*modelBudget {
	var model []*modelBudget
	for _, b := range c.Budgets {
		m := &modelBudget{PodDisruptionBudget: *b.DeepCopy()}
		for i := range c.Spent[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] {
			m.admits(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("spent-", i)}, Status: corev1.PodStatus{Conditions: readyNow()}})
		}
		model = append(model, m)
	}
	return model
}

func readyNow() []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func (c *planCase) replay(t *testing.T, model []*modelBudget, pod *corev1.Pod, p drain.PodPlan, want bool) {
	t.Helper()
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		if !want || p.Guarded {
			t.Errorf("pod %q: got %s %q, guarded %t, and the server asks no budget", p.Name, p.Action, p.Reason, p.Guarded)
		}
		return
	}
	var mine []*modelBudget
	for _, b := range model {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == pod.Namespace && s.Matches(labels.Set(pod.Labels)) {
			mine = append(mine, b)
		}
	}
	ok, spent := true, false
	if len(mine) > 1 {
		ok = false
	} else if len(mine) == 1 {
		ok, spent = mine[0].admits(pod)
	}
	if ok != want || ok && spent != p.Guarded || len(mine) != len(p.Budgets) {
		t.Errorf("pod %q: got %s %q (%s), guarded %t under %q; the server admits it: %t, and spends: %t, of %d budgets", p.Name, p.Action, p.Reason, p.Message, p.Guarded, p.Budgets, ok, spent, len(mine))
	}
}

// checkOrder: nothing starts outside the windows, and nothing leaves before an earlier tier, unless its time is over.
func (c *planCase) checkOrder(t *testing.T, r drain.Result) {
	t.Helper()
	for i, n := range r.Nodes {
		first := int32(1<<31 - 1)
		for _, p := range n.Pods {
			if p.Action != drain.Skip {
				first = min(first, p.Tier)
			}
			if p.Step == "" {
				continue
			}
			if !c.open() {
				t.Errorf("pod %q leaves by %s, and no window is open", p.Name, p.Step)
			}
			if at, asked := c.Nodes[i].Asked[p.UID]; p.Step == drain.StepDelete && (!asked || c.now.Sub(at) < 10*time.Second) {
				t.Errorf("pod %q is deleted at %v, and its eviction was refused at %v", p.Name, c.now, at)
			}
			c.checkStep(t, p, &c.Nodes[i], p.Tier > first)
		}
	}
}

func (c *planCase) checkStep(t *testing.T, p drain.PodPlan, v *drain.NodeView, early bool) {
	t.Helper()
	late := c.policy.TierDeadline > 0 && !v.Started.IsZero() && !c.now.Before(v.Started.Add(c.policy.TierDeadline))
	if early && !late && p.Step != drain.StepOutOfService {
		t.Errorf("pod %q of tier %d leaves before an earlier one", p.Name, p.Tier)
	}
	if p.Step != drain.StepEvict && (len(c.policy.Escalation) == 0 || v.Started.IsZero() || p.Step == drain.StepOutOfService && !v.PoweredOff) {
		t.Errorf("pod %q leaves by step %s, which nothing allows", p.Name, p.Step)
	}
}

// checkTime: the plan stays the same until the first of the times that it names.
func (c *planCase) checkTime(t *testing.T, r drain.Result) {
	t.Helper()
	next := c.now.Add(1000 * time.Hour)
	for _, n := range r.Nodes {
		if !n.Next.IsZero() && n.Next.Before(next) {
			next = n.Next
		}
	}
	if !next.After(c.now) {
		t.Errorf("got a next change at %v, which is not after now, %v", next, c.now)
	}
	for _, at := range []time.Time{c.now.Add(next.Sub(c.now) / 2), next.Add(-1)} {
		if later := drain.Plan(c.Snapshot, c.policy, at); !reflect.DeepEqual(r, later) {
			t.Errorf("the plan of %v differs at %v, before the time that it names, %v:\n%+v\n%+v", c.now, at, next, r, later)
		}
	}
}

// checkRepeat: the order in which a cache gives its objects does not matter.
func (c *planCase) checkRepeat(t *testing.T, r drain.Result, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 2))
	rnd.Shuffle(len(c.Budgets), func(i, j int) { c.Budgets[i], c.Budgets[j] = c.Budgets[j], c.Budgets[i] })
	for _, n := range c.Nodes {
		rnd.Shuffle(len(n.Pods), func(i, j int) { n.Pods[i], n.Pods[j] = n.Pods[j], n.Pods[i] })
	}
	if again := c.plan(); !reflect.DeepEqual(r, again) {
		t.Errorf("the same cluster in another order has another plan:\n%+v\n%+v", r, again)
	}
}
