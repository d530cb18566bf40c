// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// randomPlanCase makes a cluster from a seed: few words, so that things meet.
func randomPlanCase(seed uint64) *planCase {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &planCase{now: planStart().Add(randomTime(r)), policy: randomPolicy(r)}
	for i := range 1 + r.IntN(3) {
		var pods []*corev1.Pod
		for j := range r.IntN(8) {
			pods = append(pods, randomPod(r, fmt.Sprintf("p%d-%d", i, j)))
		}
		c.addNode(fmt.Sprint("n", i), pods...)
		randomView(r, &c.Nodes[i])
	}
	c.Spent, c.Stuck = map[types.NamespacedName]int{}, map[types.NamespacedName]time.Time{}
	for _, ns := range []string{"shop", "bank"} {
		for _, app := range []string{"web", "db", "all"} {
			if r.IntN(3) > 0 {
				b := randomBudget(r, ns, app)
				c.Budgets = append(c.Budgets, b)
				c.Spent[types.NamespacedName{Namespace: ns, Name: app}] = max(0, r.IntN(6)-3)
				if r.IntN(2) == 0 {
					c.Stuck[types.NamespacedName{Namespace: ns, Name: app}] = planStart().Add(randomTime(r))
				}
			}
		}
	}
	switch r.IntN(4) {
	case 0:
		c.DaemonSets = map[types.UID]bool{}
	case 1:
		c.Fits = func(p *corev1.Pod) (bool, string) { return p.Labels["app"] != "db", "no disk" }
	}
	return c
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomTime(r *rand.Rand) time.Duration { return time.Duration(r.IntN(12)-1) * 5 * time.Minute }

func randomPolicy(r *rand.Rand) drain.Policy {
	p := drain.Policy{
		DaemonSets: pick(r, "", drain.LastDaemonSets), LocalData: pick(r, "", drain.EvictPods), LocalDataLimit: pick[int64](r, 0, 2048),
		Unmanaged: pick(r, "", drain.EvictPods), Tolerating: pick(r, "", "Skip", drain.EvictPods), DeleteFinished: r.IntN(2) == 0, Volumes: r.IntN(2) == 0,
		GracePeriodSeconds: pick(r, nil, seconds(7)), TierDeadline: pick(r, 0, 10*time.Minute), IgnorePodLabels: r.IntN(4) == 0,
	}
	for range r.IntN(4) {
		p.Rules = append(p.Rules, drain.Rule{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, "web", "db")}}, Namespaces: pick(r, nil, []string{"shop"}), Tier: int32(r.IntN(3)),
			Behavior: pick(r, "", "", drain.BehaviorEvict, drain.BehaviorSkip, drain.BehaviorWaitCompleted, drain.BehaviorHook), Hooks: pick(r, nil, []string{"a", "b"}),
			Deadline: pick(r, 0, 15*time.Minute), Quorum: r.IntN(4) == 0,
		})
	}
	if r.IntN(2) == 0 {
		p.Escalation = []drain.Escalation{{After: 20 * time.Minute, Step: drain.StepDelete}, {After: 40 * time.Minute, Step: pick(r, drain.StepOutOfService, drain.StepDelete)}}
	}
	for range r.IntN(5) / 2 {
		from := planStart().Add(randomTime(r))
		p.Windows = append(p.Windows, drain.Window{From: pick(r, time.Time{}, from), Until: pick(r, time.Time{}, from.Add(15*time.Minute))})
	}
	if r.IntN(4) == 0 {
		p.Removal = &drain.Removal{AllowLocalData: r.IntN(2) == 0, AllowQuorum: r.IntN(2) == 0}
	}
	return p
}

func randomPod(r *rand.Rand, name string) *corev1.Pod {
	pod := planPod(name, inNamespace(pick(r, "shop", "shop", "bank")), ofApp(pick(r, "web", "web", "db")))
	for _, o := range []podOption{
		unready, unready, unready, unowned, ownedBy("DaemonSet", "ds"), ownedBy("Node", "n1"), inPhase(corev1.PodPending), inPhase(corev1.PodFailed), toleratingAll, withEmptyDir("a", "1Ki"),
		withClaim("data"), deletedAt(randomTime(r)), annotated(drain.HookAnnotation, "a,b"), labeled("drain.belay.dev/behavior", pick(r, "Skip", "WaitCompleted", "Evct")),
		annotated("drain.belay.dev/deadline", "11m"), func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} }, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = seconds(0) },
	} {
		if r.IntN(12) == 0 {
			o(pod)
		}
	}
	return pod
}

func randomView(r *rand.Rand, v *drain.NodeView) {
	v.Started, v.PoweredOff = pick(r, planStart(), planStart(), time.Time{}), r.IntN(4) == 0
	v.Bounces, v.Hooks, v.Attempts = map[types.UID]int{"uid-ds": r.IntN(4)}, map[types.UID]drain.HookState{}, map[types.UID]drain.Answer{}
	v.Asked, v.Acted = map[types.UID]time.Time{}, map[types.UID]string{}
	for _, p := range v.Pods {
		if r.IntN(2) == 0 {
			v.Hooks[p.UID] = drain.HookState{Responder: pick(r, "a", "b"), LastBeat: planStart().Add(randomTime(r)),
				Progress: pick(r, drain.HookAsked, drain.HookWorking, drain.HookDone, drain.HookDeclined)}
		}
		if r.IntN(6) == 0 {
			v.Asked[p.UID] = planStart().Add(randomTime(r))
			v.Attempts[p.UID] = drain.Answer{Code: 429, Verdict: pick[drain.Verdict](r, "BudgetExhausted", "BudgetContended", "AdmissionDenied", "Unknown")}
		} else if r.IntN(2) == 0 {
			v.Asked[p.UID] = planStart().Add(randomTime(r))
		}
		if r.IntN(8) == 0 {
			v.Acted[p.UID] = "its labels"
		}
	}
}

func randomBudget(r *rand.Rand, ns, app string) *policyv1.PodDisruptionBudget {
	expected := int32(r.IntN(6))
	b := planBudget(app, int32(r.IntN(4)), int32(r.IntN(int(expected)+1)), expected)
	b.Namespace = ns
	if app == "all" && r.IntN(2) == 0 {
		matchingAll(b)
	}
	for _, o := range []budgetOption{alwaysAllow, ifHealthy, stale, withMaxUnavailable("0"), withMaxUnavailable("25%"), withMinAvailable("100%"), unconfirmed(1999), unconfirmed(2001)} {
		if r.IntN(8) == 0 {
			o(b)
		}
	}
	return b
}
