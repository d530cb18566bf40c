// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// askedFor is the shortest time between the first refused eviction of a pod and its deletion: an operator that takes
// the eviction for a signal gets that long to show that it is at work.
const askedFor = 10 * time.Second

// unansweredTries is after how many evictions without any answer a pod counts as asked: a step past evictions must come
// also where their answers are lost for good.
const unansweredTries = 3

// How long after a refused eviction a pod whose budget allows none is asked about again, while nothing changes:
// doubling from the first to the last.
const (
	askFirst = 2 * time.Minute
	askLast  = 16 * time.Minute
)

// A podState is what of a pod and its budgets changes when an operator acts on an eviction that was refused.
type podState struct {
	pod     *corev1.Pod
	names   []string // of its budgets
	budgets string   // their names and generations
}

// stateOf returns the state of a pod under the budgets of that name.
func stateOf(pod *corev1.Pod, names []string, all []*policyv1.PodDisruptionBudget) podState {
	return podState{pod: pod, names: names, budgets: budgetGenerations(names, all)}
}

// budgetGenerations tells one set of budget specs from another. A budget that is not there has no generation.
func budgetGenerations(names []string, all []*policyv1.PodDisruptionBudget) string {
	var lines []string // a cache returns them in any order
	for _, b := range all {
		if slices.Contains(names, b.Name) {
			lines = append(lines, fmt.Sprintf("%s %d", b.UID, b.Generation))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// changedSince names what an operator may have changed of the pod since it was then, or is empty.
func changedSince(then, now *corev1.Pod) string {
	switch {
	case !maps.Equal(then.Annotations, now.Annotations):
		return "its annotations"
	case !maps.Equal(then.Labels, now.Labels):
		return "its labels"
	case !slices.Equal(then.Finalizers, now.Finalizers):
		return "its finalizers"
	}
	return ""
}

// recordChanges compares the pods that the server refused to evict with what they were then. A change that the server's
// answer may depend on has the pod asked again soon, but no sooner than after a first refusal. It returns since when
// pods have been refused, and what has changed of them.
func (m *memory) recordChanges(
	pods []*corev1.Pod, budgetsOf func(namespace string) []*policyv1.PodDisruptionBudget,
) (asked map[types.UID]time.Time, acted map[types.UID]string) {
	asked, acted = map[types.UID]time.Time{}, map[types.UID]string{}
	for _, pod := range pods {
		a, ok := m.attempts[pod.UID]
		if !ok || a.first.IsZero() {
			continue
		}
		asked[pod.UID] = a.first
		then := a.sent.pod
		if then == nil {
			continue
		}
		what := changedSince(then, pod)
		budgetsNow := budgetGenerations(a.sent.names, budgetsOf(pod.Namespace))
		swapped := budgetsNow != a.sent.budgets
		if swapped {
			what = "its budget"
		}
		if what != "" {
			acted[pod.UID] = what
		}
		again := a.last.Add(firstFallback)
		if swapped && budgetsNow == "" {
			again = time.Time{} // nothing holds it any more
		}
		if (swapped || podReady(then) != podReady(pod) || !maps.Equal(then.Labels, pod.Labels)) && again.Before(a.until) {
			a.until = again
			m.attempts[pod.UID] = a
		}
	}
	return asked, acted
}

// isHeldBy reports whether the server's last answer holds the pod back. One about budgets does not where a step past
// them is due, or where the budget has room now.
func (w *podWork) isHeldBy(answer Answer, stepIsDue bool) bool {
	if answer.judged || !answer.ofBudget() {
		return true
	}
	return !stepIsDue && (!w.Guarded || w.budget.allowed() == 0)
}

// deletesLater reports whether a step that is due has to wait for an eviction: one that was not asked yet, or not
// for long enough. Then deleteAt is when it comes.
func (w *podWork) deletesLater(asked map[types.UID]time.Time, now time.Time) bool {
	first, ok := asked[w.UID]
	if !ok {
		return true
	}
	end := first.Add(askedFor)
	if now.Before(end) {
		w.deleteAt = end
		return true
	}
	return false
}

// askAnyway has an eviction sent though it will hardly be accepted. Action and reason stay until the server has
// answered.
func (w *podWork) askAnyway(grace *int64) {
	w.Step, w.GracePeriodSeconds = StepEvict, grace
}

// asksAnyway reports whether an eviction is sent though the pod's budget allows none.
func (p *PodPlan) asksAnyway() bool {
	return p.Step == StepEvict && p.Action != Evict
}

// ofBudget reports whether an answer is about budgets: one that only an eviction can get, and no deletion.
func (a Answer) ofBudget() bool {
	switch a.Verdict {
	case verdictBudgetExhausted, verdictBudgetStale, verdictBudgetContended, verdictMultipleBudgets:
		return true
	}
	return false
}

// hold keeps a pod back for what the server has said last. It holds for every step of the ladder, since the answer may have been to
// any: the caller forgets it when the pod is to be asked for again.
func (n *nodePass) hold(w *podWork, a Answer) {
	action, reason, text := a.meaning()
	if what := n.view.Acted[w.UID]; what != "" && (a.ofBudget() || a.Verdict == verdictAdmissionDenied) {
		text = fmt.Sprintf("the server refused its eviction (%d), and %s changed since: an operator may be at work",
			a.Code, what)
		if a.Message != "" {
			text += "; the answer was: " + a.Message
		}
		w.decide(Wait, reasonOperatorAtWork, text)
		return
	}
	if w.Guarded && (reason == BudgetExhausted || reason == BudgetStale) && (!podReady(w.pod) || w.budget.neverNow()) {
		w.decide(w.budget.refusal(podReady(w.pod)))
		return
	}
	if reason == BudgetExhausted && w.Guarded && w.budget.given >= w.budget.allowed() {
		w.decide(action, reason, w.budget.describe())
		return
	}
	if a.Code != 0 {
		text = fmt.Sprintf("%s (%d)", text, a.Code)
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	w.decide(action, reason, text)
}

// meaning says what an answer means for the pod. Admission that answers with code 429 asks to wait, as that of KubeVirt
// does for a machine that it begins to migrate. No answer may be an eviction that was accepted: the pod is asked for
// again later.
func (a Answer) meaning() (Action, Reason, string) {
	switch a.Verdict {
	case verdictAccepted:
		return Wait, Terminating, "the server has accepted the eviction"
	case verdictGone, verdictReplaced:
		return Wait, Terminating, "the server has this pod no more"
	case verdictBudgetExhausted:
		return Wait, BudgetExhausted, "its budget allowed none"
	case verdictBudgetStale:
		return Wait, BudgetStale, "the status of its budget was older than its spec"
	case verdictBudgetContended:
		return Wait, BudgetContended, "the server could not update its budget in time"
	case verdictMultipleBudgets:
		return Block, reasonMultipleBudgets, "the server refused a pod under more than one budget"
	case verdictNamespaceTerminating:
		return Wait, reasonNamespaceTerminating, "it goes with its namespace"
	case verdictAdmissionDenied:
		if a.Code == http.StatusTooManyRequests {
			return Wait, reasonOperatorAtWork, "admission asks to wait"
		}
		return Block, AdmissionDenied, "admission refused"
	case verdictForbidden:
		return Block, EvictionForbidden, "the right to evict is missing"
	case verdictOverloaded:
		return Wait, ServerOverloaded, "the server asked for less"
	case verdictUnknown:
		return Wait, NoAnswer, "the server gave no clear answer, it is asked again later"
	}
	return Block, reasonEvictionRejected, "the server refused"
}
