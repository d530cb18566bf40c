// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

func tierOf(app string, tier int32) drain.Rule {
	return drain.Rule{Name: app, Tier: tier, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func ofApp(app string) podOption { return labeled("app", app) }

// The order comes in as data: the same pods under other rules leave in another order (R-DR-13).
func TestOrderIsDataFromOutside(t *testing.T) {
	pods := []*corev1.Pod{planPod("a", ofApp("a")), planPod("b", ofApp("b")), planPod("c", ofApp("c"), inNamespace("bank"))}
	for _, tc := range []struct {
		rules []drain.Rule
		order []string
		leave []string
	}{
		{nil, []string{"c", "a", "b"}, []string{"a", "b", "c"}},
		{[]drain.Rule{tierOf("a", 2), tierOf("b", 1), tierOf("c", 3)}, []string{"b", "a", "c"}, []string{"b"}},
		{[]drain.Rule{tierOf("c", -1)}, []string{"c", "a", "b"}, []string{"c"}},
	} {
		c := newPlanCase(pods...)
		c.policy.Rules = tc.rules
		r := c.plan()
		var order []string
		for _, p := range r.Nodes[0].Pods {
			order = append(order, p.Name)
		}
		if !slices.Equal(order, tc.order) || !slices.Equal(leaving(r), tc.leave) {
			t.Errorf("rules %v: got order %q, leaving %q, want %q, %q", tc.rules, order, leaving(r), tc.order, tc.leave)
		}
	}
}

// A pod that is blocked holds up later tiers and never its peers; a node's tiers are its own (R-DR-20).
func TestBlockedPodStallsLaterTiersOnly(t *testing.T) {
	c := newPlanCase(planPod("a1", ofApp("a"), unowned), planPod("a2", ofApp("a")), planPod("b1", ofApp("b")), planPod("b2", ofApp("b"), unowned))
	c.addNode("n2", planPod("b3", ofApp("b")))
	c.policy.Rules = []drain.Rule{tierOf("b", 1)}
	c.want(t, "a1", drain.Block, drain.Unmanaged)
	c.want(t, "a2", drain.Evict, "")
	c.want(t, "b1", drain.Wait, drain.WaitingForOrder, "2 pods")
	c.want(t, "b2", drain.Block, drain.Unmanaged)
	c.want(t, "b3", drain.Evict, "")
	c.wantNext(t, -1)
}

// A tier holds up the next one for its time and no longer, whatever became of the earlier ones (R-DR-20).
func TestTierDeadline(t *testing.T) {
	c := newPlanCase(planPod("a", ofApp("a"), unowned), planPod("b", ofApp("b"), unowned), planPod("c", ofApp("c")))
	c.policy = drain.Policy{Rules: []drain.Rule{tierOf("b", 10), tierOf("c", 20)}, TierDeadline: 10 * time.Minute}
	c.want(t, "c", drain.Wait, drain.WaitingForOrder)
	c.wantNext(t, 10*time.Minute)
	c.after(20*time.Minute - 1)
	c.want(t, "c", drain.Wait, drain.WaitingForOrder)
	c.wantNext(t, 20*time.Minute)
	c.Nodes[0].Pods = c.Nodes[0].Pods[1:]
	c.wantNext(t, 20*time.Minute)
	c.after(20 * time.Minute)
	c.want(t, "c", drain.Evict, "")
	c.Nodes[0].Started = time.Time{}
	c.want(t, "c", drain.Wait, drain.WaitingForOrder)
}

// Pods of DaemonSets go after every tier, when the policy evicts them.
func TestDaemonSetsGoLast(t *testing.T) {
	c := newPlanCase(planPod("ds", ownedBy("DaemonSet", "ds"), toleratingAll), planPod("z", ofApp("z"), unowned))
	c.policy = drain.Policy{DaemonSets: drain.LastDaemonSets, Rules: []drain.Rule{tierOf("z", 1000)}}
	c.want(t, "ds", drain.Wait, drain.WaitingForOrder, "DaemonSet")
	c.Nodes[0].Pods = c.Nodes[0].Pods[:1]
	c.Nodes[0].Bounces = map[types.UID]int{"uid-ds": 1}
	c.want(t, "ds", drain.Evict, "")
}

// The first rule that matches decides, and all that a rule names has to match.
func TestRules(t *testing.T) {
	low, high := int32(10), int32(20)
	prioritized := func(p *corev1.Pod) { p.Spec.Priority = &high }
	skip := func(r drain.Rule) []drain.Rule { r.Behavior = drain.BehaviorSkip; return []drain.Rule{r} }
	for name, tc := range map[string]struct {
		pod   []podOption
		rules []drain.Rule
		skips bool
	}{
		"a rule without fields":             {nil, skip(drain.Rule{}), true},
		"the namespace":                     {nil, skip(drain.Rule{Namespaces: []string{"bank", "shop"}}), true},
		"another namespace":                 {nil, skip(drain.Rule{Namespaces: []string{"bank"}}), false},
		"the labels":                        {nil, skip(tierOf("web", 0)), true},
		"other labels":                      {nil, skip(tierOf("db", 0)), false},
		"the owner":                         {nil, skip(drain.Rule{OwnerKinds: []string{"ReplicaSet"}}), true},
		"another owner":                     {nil, skip(drain.Rule{OwnerKinds: []string{"Job"}}), false},
		"no owner":                          {[]podOption{unowned, labeled("drain.belay.dev/behavior", "Evict")}, skip(drain.Rule{OwnerKinds: []string{"Job"}}), false},
		"the priority":                      {[]podOption{prioritized}, skip(drain.Rule{MinPriority: &high, MaxPriority: &high}), true},
		"a priority that is too low":        {nil, skip(drain.Rule{MinPriority: &low}), false},
		"a priority that is too high":       {[]podOption{prioritized}, skip(drain.Rule{MaxPriority: &low}), false},
		"one of two does not match":         {nil, skip(drain.Rule{Namespaces: []string{"shop"}, OwnerKinds: []string{"Job"}}), false},
		"the first decides":                 {nil, append([]drain.Rule{{Behavior: drain.BehaviorEvict}}, skip(drain.Rule{})...), false},
		"the rule beats the label":          {[]podOption{labeled("drain.belay.dev/behavior", "Skip")}, []drain.Rule{{Behavior: drain.BehaviorEvict}}, false},
		"the label fills an empty behavior": {[]podOption{labeled("drain.belay.dev/behavior", "Skip")}, []drain.Rule{{Tier: 3}}, true},
		"a selector that cannot be read":    {nil, skip(drain.Rule{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a b"}}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPlanCase(planPod("p", tc.pod...))
			c.policy.Rules = tc.rules
			if tc.skips {
				c.want(t, "p", drain.Skip, "SkippedByRule")
			} else {
				c.want(t, "p", drain.Evict, "")
			}
		})
	}
}

// A rule that says Evict allows the loss of local data and of pods that nothing creates again.
func TestRuleThatEvictsAllowsLoss(t *testing.T) {
	c := newPlanCase(planPod("p", unowned, withEmptyDir("a", "")))
	c.policy.Rules = []drain.Rule{{Behavior: drain.BehaviorEvict}}
	c.want(t, "p", drain.Evict, "")
}

// A rule's deadline and responders stand in for what the pod does not say.
func TestPodFillsInWhatItsRuleLeavesOpen(t *testing.T) {
	c := newPlanCase(planPod("p", labeled("drain.belay.dev/behavior", "Hook"), annotated("drain.belay.dev/deadline", "3m")))
	c.policy.Rules = []drain.Rule{{Hooks: []string{"vm"}, Deadline: time.Hour}}
	if p := c.want(t, "p", drain.Hook, "WaitingForHook"); p.Hook != "vm" || p.HookSilence != 3*time.Minute {
		t.Errorf("got hook %q, silent for %s at most, want vm, 3m", p.Hook, p.HookSilence)
	}
}

// Pods under WaitCompleted may finish until their deadline, counted from the start of the drain.
func TestWaitCompletedEnds(t *testing.T) {
	c := newPlanCase(planPod("p"))
	c.policy.Rules = []drain.Rule{{Name: "batch", Behavior: drain.BehaviorWaitCompleted, Deadline: time.Hour}}
	c.want(t, "p", drain.Wait, "WaitingForCompletion", `rule "batch"`, "until 2026-08-01T13:00:00Z")
	c.wantNext(t, time.Hour)
	c.after(time.Hour)
	c.want(t, "p", drain.Evict, "")
	c.Nodes[0].Started = time.Time{}
	c.want(t, "p", drain.Wait, "WaitingForCompletion")
	c.wantNext(t, -1)
}

// The end of the grace period is followed by a margin, then by a reason that says what holds the pod.
func TestTerminatingPodIsWaitedForWithAMargin(t *testing.T) {
	c := newPlanCase(planPod("p", deletedAt(time.Minute)))
	c.want(t, "p", drain.Wait, drain.Terminating)
	c.wantNext(t, 90*time.Second)
	if got := c.plan().Nodes[0].Counts; got != (drain.Counts{Remaining: 1, Terminating: 1}) {
		t.Errorf("got counts %+v, want one that is terminating", got)
	}
	c.after(90 * time.Second)
	c.want(t, "p", drain.Block, "StuckTerminating")
	c.wantNext(t, -1)
}
