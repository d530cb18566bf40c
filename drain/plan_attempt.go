// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "fmt"

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
	if w.Guarded && !podReady(w.pod) && (reason == BudgetExhausted || reason == BudgetStale) {
		w.decide(w.budget.refusal(false))
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

// meaning says what an answer means for the pod. No answer may be an eviction that was accepted: the pod is asked for again later.
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
		return Wait, NamespaceTerminating, "it goes with its namespace"
	case verdictAdmissionDenied:
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
