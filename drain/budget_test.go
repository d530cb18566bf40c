// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

func webBudget() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "web"} }

// The plan asks the same questions as the server, in the server's order.
func TestBudgetsAreJudgedAsTheServerDoes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		pod     []podOption
		budget  *policyv1.PodDisruptionBudget
		action  drain.Action
		reason  drain.Reason
		guarded bool
		names   int
	}{
		{name: "allowed", budget: planBudget("web", 1, 2, 2), action: drain.Evict, guarded: true, names: 1},
		{name: "refused", budget: planBudget("web", 2, 2, 3), action: drain.Wait, reason: drain.BudgetExhausted, guarded: true, names: 1},
		{name: "negative", budget: planBudget("web", 2, 2, 3, allowing(-1)), action: drain.Wait, reason: drain.BudgetExhausted, guarded: true, names: 1},
		{name: "pending", pod: []podOption{inPhase(corev1.PodPending), unready}, budget: planBudget("web", 1, 0, 1), action: drain.Evict, names: 1},
		{name: "unready, the app is healthy", pod: []podOption{unready}, budget: planBudget("web", 2, 2, 3), action: drain.Evict, names: 1},
		{name: "unready, the app is healthy by a stale status", pod: []podOption{unready}, budget: planBudget("web", 2, 2, 3, stale), action: drain.Evict, names: 1},
		{name: "unready, nothing is needed", pod: []podOption{unready}, budget: planBudget("web", 0, 0, 3), action: drain.Wait, reason: "UnhealthyProtected", guarded: true, names: 1},
		{name: "unready, nothing is needed, and one is left", pod: []podOption{unready}, budget: planBudget("web", 0, 1, 3), action: drain.Evict, guarded: true, names: 1},
		{name: "unready, the app is not healthy", pod: []podOption{unready}, budget: planBudget("web", 2, 1, 3), action: drain.Wait, reason: "UnhealthyProtected", guarded: true, names: 1},
		{name: "unready, by name of the default", pod: []podOption{unready}, budget: planBudget("web", 2, 1, 3, ifHealthy), action: drain.Wait, reason: "UnhealthyProtected", guarded: true, names: 1},
		{name: "unready, always allowed", pod: []podOption{unready}, budget: planBudget("web", 2, 0, 2, alwaysAllow, stale), action: drain.Evict, names: 1},
		{name: "no condition is not ready", pod: []podOption{func(p *corev1.Pod) { p.Status.Conditions = nil }}, budget: planBudget("web", 2, 0, 3, alwaysAllow), action: drain.Evict, names: 1},
		{name: "ready, always allowed is not for it", budget: planBudget("web", 2, 2, 3, alwaysAllow), action: drain.Wait, reason: drain.BudgetExhausted, guarded: true, names: 1},
		{name: "2000 unconfirmed", budget: planBudget("web", 1, 3, 3, unconfirmed(2000)), action: drain.Evict, guarded: true, names: 1},
		{name: "2001 unconfirmed", budget: planBudget("web", 1, 3, 3, unconfirmed(2001)), action: drain.Wait, reason: drain.BudgetExhausted, guarded: true, names: 1},
		{name: "another namespace", pod: []podOption{inNamespace("other")}, budget: planBudget("web", 2, 2, 3), action: drain.Evict},
		{name: "another app", budget: planBudget("db", 2, 2, 3), action: drain.Evict},
		{name: "an empty selector is for all", pod: []podOption{labeled("app", "db")}, budget: planBudget("web", 2, 2, 3, matchingAll), action: drain.Wait, reason: drain.BudgetExhausted, guarded: true, names: 1},
		{name: "no selector is for none", budget: planBudget("web", 2, 2, 3, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }), action: drain.Evict},
		{name: "a selector that cannot be read is for none", action: drain.Evict, budget: planBudget("web", 2, 2, 3, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newPlanCase(planPod("p", tc.pod...))
			c.addBudgets(tc.budget)
			p := c.want(t, "p", tc.action, tc.reason)
			if p.Guarded != tc.guarded || len(p.Budgets) != tc.names {
				t.Errorf("got guarded %t, budgets %q, want %t, %d", p.Guarded, p.Budgets, tc.guarded, tc.names)
			}
		})
	}
}

func allowing(n int32) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = n }
}

func unconfirmed(n int) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for i := range n {
			b.Status.DisruptedPods[fmt.Sprint("gone-", i)] = metav1.Time{Time: planStart()}
		}
	}
}

// A budget that cannot ever allow is told apart from one that does not allow now (R-DR-03).
func TestBudgetThatNeverAllowsIsKnownFromItsNumbers(t *testing.T) {
	healthy := func(minimum, expected int32, o ...budgetOption) *policyv1.PodDisruptionBudget {
		return planBudget("web", minimum, expected, expected, o...)
	}
	for name, tc := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		never  bool
	}{
		"as many as there are":                      {healthy(3, 3), true},
		"more than there are":                       {healthy(4, 3), true},
		"as many as there are, by a stale status":   {healthy(3, 3, stale), false},
		"no pods counted yet":                       {healthy(1, 0), false},
		"0 may be missing":                          {healthy(3, 3, withMaxUnavailable("0"), stale), true},
		"0 % may be missing":                        {healthy(3, 3, withMaxUnavailable("0%"), stale), true},
		"1 % may be missing":                        {planBudget("web", 2, 2, 3, withMaxUnavailable("1%")), false},
		"100 % are needed":                          {healthy(3, 3, withMinAvailable("100%"), stale), true},
		"99 % of few are needed":                    {healthy(3, 3, withMinAvailable("99%")), true},
		"99 % of many are needed":                   {planBudget("web", 99, 99, 100, withMinAvailable("99%")), false},
		"not a percent":                             {planBudget("web", 2, 2, 3, withMinAvailable("all")), false},
		"neither is set":                            {planBudget("web", 0, 0, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = nil }), true},
		"more pods than wanted, and so one may go":  {planBudget("web", 3, 4, 3, withMaxUnavailable("0")), false},
		"two of three, none may go now":             {planBudget("web", 2, 2, 3), false},
		"more pods than wanted, none healthy to go": {planBudget("web", 3, 3, 3, withMaxUnavailable("0")), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPlanCase(planPod("p"))
			c.addBudgets(tc.budget)
			p := c.pod(t, "p")
			if got := p.Action == drain.Block && p.Reason == drain.BudgetNeverAllows && p.Step == drain.StepEvict; got != tc.never {
				t.Errorf("got %s %q (%s), want never allowed: %t", p.Action, p.Reason, p.Message, tc.never)
			}
			b := c.plan().Budgets[0]
			if b.Never != tc.never || tc.never && b.Rounds != 0 {
				t.Errorf("got never %t in %d rounds, want %t", b.Never, b.Rounds, tc.never)
			}
		})
	}
}

// A budget that expects fewer pods for the moment, because one is being replaced, is not taken for one that never allows any, until the
// smaller number has stood for a while (R-DR-03).
func TestBudgetThatDipsIsNotOneThatNeverAllows(t *testing.T) {
	c := newPlanCase(planPod("p"))
	c.addBudgets(planBudget("web", 3, 3, 3))
	c.after(0)
	c.Dips = map[types.NamespacedName]drain.Dip{webBudget(): {Pods: 4, Until: planStart().Add(time.Minute)}}
	c.want(t, "p", drain.Wait, drain.BudgetExhausted, "3 of 3 pods healthy, 3 needed")
	if b := c.plan().Budgets[0]; b.Never {
		t.Errorf("got %+v, want a budget that may allow", b)
	}
	c.wantNext(t, time.Minute)
	c.after(time.Minute)
	c.want(t, "p", drain.Block, drain.BudgetNeverAllows)
	c.after(0)
	c.Dips[webBudget()] = drain.Dip{Pods: 3, Until: planStart().Add(time.Minute)}
	c.want(t, "p", drain.Block, drain.BudgetNeverAllows)
}

// The nodes of a plan share what a budget allows; the node with fewer pods left comes first, so that it finishes.
func TestBudgetGoesToTheNodeWithFewestPodsLeft(t *testing.T) {
	c := newPlanCase(planPod("a1"), planPod("a2"), planPod("a3"))
	c.addNode("n2", planPod("b2"), planPod("b1"))
	c.addBudgets(planBudget("web", 2, 5, 5))
	for _, tc := range []struct {
		spent int
		leave []string
	}{{0, []string{"b1", "b2", "a1"}}, {1, []string{"b1", "b2"}}, {2, []string{"b1"}}, {3, nil}, {4, nil}} {
		c.Spent = map[types.NamespacedName]int{webBudget(): tc.spent, {Namespace: "other", Name: "web"}: 9}
		r := c.plan()
		if got := leaving(r); !slices.Equal(got, sorted(tc.leave)) {
			t.Errorf("with %d spent: got %q leaving, want %q", tc.spent, got, tc.leave)
		}
		if want := max(0, 3-tc.spent); r.Budgets[0].Allowed != want {
			t.Errorf("with %d spent: got %d allowed, want %d", tc.spent, r.Budgets[0].Allowed, want)
		}
	}
	c.Spent[webBudget()] = 2
	c.want(t, "a1", drain.Wait, drain.BudgetExhausted, "allows 3 disruptions: 5 of 5 pods healthy, 2 needed", "2 taken by evictions under way, 1 by other pods")
}

// leaving lists the pods that a plan lets go.
func leaving(r drain.Result) []string {
	var names []string
	for _, n := range r.Nodes {
		for _, p := range n.Pods {
			if p.Action == drain.Evict {
				names = append(names, p.Name)
			}
		}
	}
	return sorted(names)
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

// A pod that cannot use a share of its budget leaves it to the others.
func TestBlockedPodHoldsNoShareOfItsBudget(t *testing.T) {
	c := newPlanCase(planPod("a"), planPod("b", withEmptyDir("x", "")), planPod("c"), planPod("d"))
	c.addBudgets(planBudget("web", 3, 4, 4))
	c.Nodes[0].Attempts = map[types.UID]drain.Answer{"uid-a": {Verdict: "AdmissionDenied"}}
	if got := leaving(c.plan()); !slices.Equal(got, []string{"c"}) {
		t.Errorf("got %q leaving, want c: a is refused by admission, b has local data", got)
	}
}

// The failure of the disruption controller stands in the message: the numbers are not to be trusted then.
func TestBudgetMessageTellsOfAFailedController(t *testing.T) {
	c := newPlanCase(planPod("p"))
	b := planBudget("web", 2, 2, 3)
	b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
	c.addBudgets(b)
	c.want(t, "p", drain.Wait, drain.BudgetExhausted, "its controller failed: no scale")
}

// What was seen 7: "6 of 8 healthy" names the two pods that are not, and why, so that a person knows where to look.
func TestBudgetMessageNamesThePodsThatAreNotReady(t *testing.T) {
	pending := planPod("cart-2", func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable", Message: "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector."}}
	})
	unready := func(name, waits string) *corev1.Pod {
		return planPod(name, func(p *corev1.Pod) {
			p.Status.Conditions = nil
			p.Spec.NodeName = "n2"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
			if waits != "" {
				p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: waits}
			}
		})
	}
	others := []*corev1.Pod{pending, unready("cart-5", "CrashLoopBackOff"), unready("cart-3", "ImagePullBackOff"),
		unready("cart-7", ""), unready("cart-8", ""), planPod("p"), planPod("q", labeled("app", "other"))}
	c := newPlanCase(planPod("p"))
	c.PodsIn = func(namespace string) []*corev1.Pod {
		if namespace != "shop" {
			t.Errorf("asked for the pods of namespace %q, want shop", namespace)
		}
		return others
	}
	c.addBudgets(planBudget("web", 6, 6, 8))
	c.want(t, "p", drain.Wait, drain.BudgetExhausted, "6 of 8 pods healthy, 6 needed; not ready: "+
		"cart-2 (Pending, 0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector.), "+
		"cart-3 (container main: ImagePullBackOff), cart-5 (container main: CrashLoopBackOff), and 2 more")
	others = others[3:4]
	c.want(t, "p", drain.Wait, drain.BudgetExhausted, "; not ready: cart-7 (container main is not ready, on node ")
}

// Rounds are a lower bound from what the budget allows with every pod healthy.
func TestRounds(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 7 {
		pods = append(pods, planPod(fmt.Sprint("p", i)))
	}
	for name, tc := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		rounds int
	}{
		"2 at a time":                 {planBudget("web", 8, 10, 10), 4},
		"2 at a time, none now":       {planBudget("web", 8, 8, 10), 4},
		"stale, 3 may be missing":     {planBudget("web", 8, 10, 10, stale, withMaxUnavailable("3")), 3},
		"stale, and nothing is known": {planBudget("web", 8, 10, 10, stale), 1},
		"more allowed than expected":  {planBudget("web", 8, 15, 10), 1},
		"other pods":                  {planBudget("db", 8, 10, 10), 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPlanCase(pods...)
			c.addBudgets(tc.budget)
			if r := c.plan(); r.Rounds != tc.rounds {
				t.Errorf("got %d rounds, want %d (%+v)", r.Rounds, tc.rounds, r.Budgets)
			}
		})
	}
	if r := newPlanCase(planPod("p", ownedBy("DaemonSet", "ds"))).plan(); r.Rounds != 0 || len(r.Budgets) != 0 {
		t.Errorf("nothing has to leave: got %d rounds, budgets %v, want none", r.Rounds, r.Budgets)
	}
}

// A BudgetPlan counts the pods that have to leave: not those that stay, nor those that are leaving.
func TestBudgetPlanCountsPodsThatHaveToLeave(t *testing.T) {
	c := newPlanCase(planPod("a"), planPod("b", ownedBy("DaemonSet", "ds")), planPod("c", deletedAt(time.Hour)), planPod("d", inPhase(corev1.PodPending)))
	c.addBudgets(planBudget("web", 1, 2, 3), planBudget("db", 1, 2, 3))
	got := c.plan().Budgets
	want := drain.BudgetPlan{Budget: webBudget(), Pods: 2, Allowed: 1, Rounds: 1}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v alone", got, want)
	}
}
