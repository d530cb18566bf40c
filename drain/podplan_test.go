// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// A reasonCase shows one way to a reason, for the pod "p".
type reasonCase struct {
	name   string
	pod    []podOption
	set    func(*planCase)
	action drain.Action
	reason drain.Reason
	parts  []string
}

func reasonCases() []reasonCase {
	var all []reasonCase
	for _, cases := range [][]reasonCase{leavingCases(), skippedCases(), waitingCases(), blockedCases(), answerCases()} {
		all = append(all, cases...)
	}
	return all
}

func leavingCases() []reasonCase {
	return []reasonCase{
		{name: "a pod without a budget leaves", action: drain.Evict},
		{name: "a finished pod is deleted if asked for", pod: []podOption{inPhase(corev1.PodFailed), unowned, withEmptyDir("a", "")},
			set: func(c *planCase) { c.policy.DeleteFinished = true }, action: drain.Evict},
		{name: "the pod's own label allows the loss of its data", pod: []podOption{withEmptyDir("a", ""), unowned, labeled("drain.belay.dev/behavior", "Evict")}, action: drain.Evict},
		{name: "the policy allows the loss of local data", pod: []podOption{withEmptyDir("a", "")},
			set: func(c *planCase) { c.policy.LocalData = drain.EvictPods }, action: drain.Evict},
		{name: "little local data may be lost", pod: []podOption{withEmptyDir("a", "512"), withEmptyDir("b", "512")},
			set: func(c *planCase) { c.policy.LocalDataLimit = 1024 }, action: drain.Evict},
		{name: "the policy lets unmanaged pods go", pod: []podOption{unowned},
			set: func(c *planCase) { c.policy.Unmanaged = drain.EvictPods }, action: drain.Evict},
		{name: "tolerating pods are evicted by default", pod: []podOption{toleratingAll}, action: drain.Evict},
		{name: "the policy evicts tolerating pods", pod: []podOption{toleratingAll},
			set: func(c *planCase) { c.policy.Tolerating = drain.EvictPods }, action: drain.Evict},
		{name: "a toleration of a taint with a value is none of the cordon", action: drain.Evict,
			pod: []podOption{tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Value: "x"}),
				tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})}},
		{name: "labels without effect", pod: []podOption{labeled("drain.belay.dev/behavior", "Skip"), annotated(drain.HookAnnotation, "x")},
			set: func(c *planCase) { c.policy.IgnorePodLabels = true }, action: drain.Evict},
		{name: "the time to finish is over", pod: []podOption{labeled("drain.belay.dev/behavior", "WaitCompleted"), annotated("drain.belay.dev/deadline", "1m")}, action: drain.Evict},
	}
}

func skippedCases() []reasonCase {
	rule := func(r drain.Rule) func(*planCase) { return func(c *planCase) { c.policy.Rules = []drain.Rule{r} } }
	return []reasonCase{
		{name: "mirror pod by annotation, although a DaemonSet owns it", pod: []podOption{annotated(corev1.MirrorPodAnnotationKey, ""), ownedBy("DaemonSet", "ds"), inPhase(corev1.PodFailed)},
			action: drain.Skip, reason: "MirrorPod"},
		{name: "mirror pod by owner", pod: []podOption{ownedBy("Node", "n1"), deletedAt(0)}, action: drain.Skip, reason: "MirrorPod"},
		{name: "pod of a DaemonSet", pod: []podOption{ownedBy("DaemonSet", "ds"), toleratingAll}, action: drain.Skip, reason: "DaemonSetPod", parts: []string{`"ds"`}},
		{name: "no rule evicts a pod of a DaemonSet", pod: []podOption{ownedBy("DaemonSet", "ds")}, set: rule(drain.Rule{Behavior: drain.BehaviorEvict}),
			action: drain.Skip, reason: "DaemonSetPod"},
		{name: "finished pod", pod: []podOption{inPhase(corev1.PodSucceeded), unowned}, action: drain.Skip, reason: "Terminal", parts: []string{"Succeeded"}},
		{name: "finished pod that finalizers hold", pod: []podOption{inPhase(corev1.PodFailed), deletedAt(-time.Hour)}, action: drain.Skip, reason: "Terminal"},
		{name: "tolerates everything", pod: []podOption{toleratingAll}, action: drain.Skip, reason: "ToleratesCordon",
			set: func(c *planCase) { c.policy.Tolerating = "Skip" }},
		{name: "tolerates the cordon", pod: []podOption{tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})},
			action: drain.Skip, reason: "ToleratesCordon", set: func(c *planCase) { c.policy.Tolerating = "Skip" }},
		{name: "came back", pod: []podOption{toleratingAll}, action: drain.Skip, reason: "Bounced", parts: []string{`ReplicaSet "web-1"`, "2 times"},
			set: func(c *planCase) {
				c.policy.Tolerating = drain.EvictPods
				c.Nodes[0].Bounces = map[types.UID]int{"uid-web-1": 2}
			}},
		{name: "a daemon came back", pod: []podOption{ownedBy("DaemonSet", "ds")}, action: drain.Skip, reason: "Bounced", parts: []string{"3 times"},
			set: func(c *planCase) {
				c.policy.DaemonSets = drain.LastDaemonSets
				c.Nodes[0].Bounces = map[types.UID]int{"uid-ds": 3}
			}},
		{name: "skipped by rule", set: rule(drain.Rule{Name: "keep", Behavior: drain.BehaviorSkip}), action: drain.Skip, reason: "SkippedByRule", parts: []string{`rule "keep"`}},
		{name: "skipped by label", pod: []podOption{labeled("drain.belay.dev/behavior", "Skip")}, action: drain.Skip, reason: "SkippedByRule", parts: []string{"own label"}},
	}
}

func waitingCases() []reasonCase {
	return []reasonCase{
		{name: "within its grace period", pod: []podOption{deletedAt(31 * time.Second)}, action: drain.Wait, reason: drain.Terminating},
		{name: "may finish", pod: []podOption{labeled("drain.belay.dev/behavior", "WaitCompleted"), withEmptyDir("a", "")}, action: drain.Wait, reason: "WaitingForCompletion"},
		{name: "may finish for a while", pod: []podOption{labeled("drain.belay.dev/behavior", "WaitCompleted"), annotated("drain.belay.dev/deadline", "61s")},
			action: drain.Wait, reason: "WaitingForCompletion", parts: []string{"until 2026-08-01T12:01:01Z"}},
		{name: "a hook", pod: []podOption{annotated(drain.HookAnnotation, "vm")}, action: drain.Hook, reason: "WaitingForHook", parts: []string{`"vm"`}},
		{name: "an earlier tier", action: drain.Wait, reason: drain.WaitingForOrder, parts: []string{"tier 1", "1 pods"},
			set: func(c *planCase) {
				c.policy.Rules = []drain.Rule{{OwnerKinds: []string{"ReplicaSet"}, Tier: 1}}
				c.Nodes[0].Pods = append(c.Nodes[0].Pods, planPod("first", unowned))
			}},
		{name: "an empty budget", action: drain.Wait, reason: drain.BudgetExhausted, parts: []string{`budget "web" allows 0 disruptions: 2 of 3 pods healthy, 2 needed`},
			set: func(c *planCase) { c.addBudgets(planBudget("web", 2, 2, 3)) }},
		{name: "a stale budget", action: drain.Wait, reason: drain.BudgetStale, parts: []string{"generation 1", "generation 2"},
			set: func(c *planCase) { c.addBudgets(planBudget("web", 1, 3, 3, stale)) }},
		{name: "a closed window", action: drain.Wait, reason: drain.WindowClosed, parts: []string{"none follows"},
			set: func(c *planCase) { c.policy.Windows = []drain.Window{{Until: planStart()}} }},
		{name: "not ready, its budget does not let it go", pod: []podOption{unready}, action: drain.Wait, reason: "UnhealthyProtected", parts: []string{"AlwaysAllow", "1 of 3 pods healthy, 2 needed"},
			set: func(c *planCase) { c.addBudgets(planBudget("web", 2, 1, 3)) }},
	}
}

func blockedCases() []reasonCase {
	removal := func(c *planCase) {
		c.policy.Removal = &drain.Removal{}
		c.policy.Rules = []drain.Rule{{Name: "db", Quorum: true, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"db": "yes"}}}}
	}
	return []reasonCase{
		{name: "finalizers", pod: []podOption{deletedAt(30 * time.Second), func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} }},
			action: drain.Block, reason: "FinalizersRemain", parts: []string{"a/b", "2026-08-01T12:00:30Z"}},
		{name: "a silent kubelet", pod: []podOption{deletedAt(0)}, action: drain.Block, reason: "NodeUnreachable",
			set: func(c *planCase) {
				c.Nodes[0].Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			}},
		{name: "a node with the taint of a silent kubelet", pod: []podOption{deletedAt(0)}, action: drain.Block, reason: "NodeUnreachable",
			set: func(c *planCase) { c.Nodes[0].Node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} }},
		{name: "ends for too long", pod: []podOption{deletedAt(0)}, action: drain.Block, reason: "StuckTerminating"},
		{name: "a budget that never allows", action: drain.Block, reason: drain.BudgetNeverAllows, parts: []string{"1 of 1 pods healthy, 1 needed"},
			set: func(c *planCase) { c.addBudgets(planBudget("web", 1, 1, 1)) }},
		{name: "not ready under a budget that never allows", pod: []podOption{unready}, action: drain.Block, reason: "UnhealthyProtected", parts: []string{"AlwaysAllow", "none even"},
			set: func(c *planCase) { c.addBudgets(planBudget("web", 1, 0, 1)) }},
		{name: "two budgets", action: drain.Block, reason: "MultipleBudgets", parts: []string{`["all" "web"]`},
			set: func(c *planCase) {
				c.addBudgets(planBudget("web", 1, 3, 3), planBudget("all", 1, 3, 3, matchingAll))
			}},
		{name: "unmanaged", pod: []podOption{unowned}, action: drain.Block, reason: drain.Unmanaged},
		{name: "of a DaemonSet that is gone", pod: []podOption{ownedBy("DaemonSet", "ds"), toleratingAll}, action: drain.Block, reason: drain.Unmanaged,
			set: func(c *planCase) { c.DaemonSets = map[types.UID]bool{"uid-other": true} }},
		{name: "local data", pod: []podOption{withEmptyDir("cache", "1Ki")}, action: drain.Block, reason: drain.LocalStorage, parts: []string{`"cache"`}},
		{name: "local data without a limit", pod: []podOption{withEmptyDir("a", "1"), withEmptyDir("b", "0")}, action: drain.Block, reason: drain.LocalStorage, parts: []string{`"b"`, "no size limit"},
			set: func(c *planCase) { c.policy.LocalDataLimit = 1024 }},
		{name: "too much local data", pod: []podOption{withEmptyDir("a", "1Ki"), withEmptyDir("b", "1")}, action: drain.Block, reason: drain.LocalStorage, parts: []string{"1025 bytes", "1024"},
			set: func(c *planCase) { c.policy.LocalDataLimit = 1024 }},
		{name: "nowhere to go", action: drain.Block, reason: "NowhereToGo", parts: []string{"no GPU"},
			set: func(c *planCase) { c.Fits = func(*corev1.Pod) (bool, string) { return false, "no GPU" } }},
		{name: "the last replica", pod: []podOption{withClaim("data")}, action: drain.Block, reason: "LastReplica", parts: []string{`"data"`}, set: removal},
		{name: "kept by a rule", pod: []podOption{labeled("keep", "yes")}, action: drain.Block, reason: blockedByRule,
			parts: []string{`rule "keep" keeps it`}, set: func(c *planCase) {
				keep := &metav1.LabelSelector{MatchLabels: map[string]string{"keep": "yes"}}
				c.policy.Rules = []drain.Rule{{Name: "keep", Selector: keep, Behavior: drain.BehaviorBlock}}
			}},
		{name: "a member of a quorum", pod: []podOption{labeled("db", "yes")}, action: drain.Block, reason: "QuorumMember", parts: []string{`rule "db"`}, set: removal},
		{name: "an unknown behavior", pod: []podOption{labeled("drain.belay.dev/behavior", "Evct")}, action: drain.Block, reason: drain.InvalidBehavior, parts: []string{`"Evct"`, `"WaitCompleted"`}},
		{name: "an empty behavior", pod: []podOption{labeled("drain.belay.dev/behavior", "")}, action: drain.Block, reason: drain.InvalidBehavior, parts: []string{"is empty"}},
		{name: "a hook without a responder", pod: []podOption{labeled("drain.belay.dev/behavior", "Hook")}, action: drain.Block, reason: drain.InvalidBehavior, parts: []string{"no responder"}},
		{name: "a responder without a name", pod: []podOption{annotated(drain.HookAnnotation, "a,,b")}, action: drain.Block, reason: drain.InvalidBehavior, parts: []string{`"a,,b"`}},
		{name: "an unknown deadline", pod: []podOption{annotated(drain.HookAnnotation, "a"), annotated("drain.belay.dev/deadline", "soon")}, action: drain.Block, reason: drain.InvalidBehavior, parts: []string{`"soon"`, "30m"}},
	}
}

// answerCases have the server's last answer.
func answerCases() []reasonCase {
	answer := func(v drain.Verdict, action drain.Action, reason drain.Reason) reasonCase {
		return reasonCase{name: "answer " + string(v), action: action, reason: reason, parts: []string{"(499): because"},
			set: func(c *planCase) {
				c.Nodes[0].Attempts = map[types.UID]drain.Answer{"uid-p": {Verdict: v, Code: 499, Message: "because"}}
			}}
	}
	return []reasonCase{
		answer("Accepted", drain.Wait, drain.Terminating),
		answer("Gone", drain.Wait, drain.Terminating),
		answer("Replaced", drain.Wait, drain.Terminating),
		answer("BudgetExhausted", drain.Wait, drain.BudgetExhausted),
		answer("BudgetStale", drain.Wait, drain.BudgetStale),
		answer("BudgetContended", drain.Wait, drain.BudgetContended),
		answer("MultipleBudgets", drain.Block, "MultipleBudgets"),
		answer("NamespaceTerminating", drain.Wait, "NamespaceTerminating"),
		answer("AdmissionDenied", drain.Block, drain.AdmissionDenied),
		answer("Forbidden", drain.Block, drain.EvictionForbidden),
		answer("Overloaded", drain.Wait, drain.ServerOverloaded),
		answer("Unknown", drain.Wait, drain.NoAnswer),
		answer("Rejected", drain.Block, "EvictionRejected"),
		{name: "answer of an operator that begins to act", action: drain.Wait, reason: "OperatorAtWork", parts: []string{"asks to wait (429): because"},
			set: func(c *planCase) {
				c.Nodes[0].Attempts = map[types.UID]drain.Answer{"uid-p": {Verdict: "AdmissionDenied", Code: 429, Message: "because"}}
			}},
		{name: "an operator that has acted", action: drain.Wait, reason: "OperatorAtWork", parts: []string{"its annotations changed"},
			set: func(c *planCase) {
				c.addBudgets(planBudget("web", 1, 1, 1))
				c.Nodes[0].Attempts = map[types.UID]drain.Answer{"uid-p": {Verdict: "BudgetExhausted", Code: 429}}
				c.Nodes[0].Acted = map[types.UID]string{"uid-p": "its annotations"}
			}},
	}
}

// Each pod has an action, a reason that says why, and a message with the facts (R-DR-03).
func TestEveryReasonOfPodsHasItsCause(t *testing.T) {
	reached := map[drain.Reason]bool{drain.WaitingForRate: true} // only the Scheduler gives it: see its tests
	for _, rc := range reasonCases() {
		reached[rc.reason] = true
		t.Run(rc.name, func(t *testing.T) {
			c := newPlanCase(planPod("p", rc.pod...))
			if rc.set != nil {
				rc.set(c)
			}
			p := c.want(t, "p", rc.action, rc.reason, rc.parts...)
			if rc.action != drain.Evict && p.Message == "" {
				t.Error("got no message, want one for each pod that stays")
			}
			asked := rc.action == drain.Block && len(p.Budgets) > 0 && c.Nodes[0].Attempts == nil
			if (p.Step != "") != (rc.action == drain.Evict || asked) {
				t.Errorf("got step %q with action %s, want one for pods that leave or are asked alone", p.Step, p.Action)
			}
		})
	}
	for _, r := range podReasons(t) {
		if !reached[r] {
			t.Errorf("no case leads to reason %q", r)
		}
	}
}

// podReasons reads the reasons of pods from the source, so that a new one without a case is noticed.
func podReasons(t *testing.T) []drain.Reason {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []drain.Reason
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			value, err := strconv.Unquote(s.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, drain.Reason(value))
		}
		break // the second block is of nodes and sets
	}
	if len(reasons) < 30 {
		t.Fatalf("got %d reasons of pods from reason.go, want all of them", len(reasons))
	}
	return reasons
}
