// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// A Verdict is what the server's answer to an eviction means: Accepted, Gone, Replaced, BudgetExhausted, BudgetStale,
// BudgetContended, MultipleBudgets, NamespaceTerminating, AdmissionDenied, Forbidden, Overloaded, Unknown or Rejected.
type Verdict string

// Every answer has exactly one verdict.
const (
	verdictAccepted             Verdict = "Accepted"
	verdictGone                 Verdict = "Gone"                 // 404: the pod is not there
	verdictReplaced             Verdict = "Replaced"             // 409 on the pod: another UID
	verdictBudgetExhausted      Verdict = "BudgetExhausted"      // 429 with cause DisruptionBudget
	verdictBudgetStale          Verdict = "BudgetStale"          // 429 with that cause and Retry-After: status older than spec
	verdictBudgetContended      Verdict = "BudgetContended"      // 409 on the budget, or 504 of an update that kept conflicting
	verdictMultipleBudgets      Verdict = "MultipleBudgets"      // 500 of a pod under two budgets
	verdictNamespaceTerminating Verdict = "NamespaceTerminating" // 403 with that cause
	verdictAdmissionDenied      Verdict = "AdmissionDenied"      // an admission webhook or policy said no
	verdictForbidden            Verdict = "Forbidden"            // the right is missing
	verdictOverloaded           Verdict = "Overloaded"           // 429 without a cause, 503: ask less, globally
	verdictUnknown              Verdict = "Unknown"              // no answer, time-out, 5xx: it may have been accepted
	verdictRejected             Verdict = "Rejected"             // anything else that the server says about the request itself
)

// An Answer is the server's answer to an eviction, understood.
type Answer struct {
	Verdict Verdict
	// Code is the HTTP status, 0 without an answer.
	Code int
	// RetryAfter is the server's own wish, 0 without one.
	RetryAfter time.Duration
	// Message is the server's, for people.
	Message string
	// judged: it was given for this plan, and holds whatever the cache shows of budgets.
	judged bool
}
