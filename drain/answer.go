// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// A Verdict is what the server's answer to an eviction means.
type Verdict string

// The verdicts. Every answer has exactly one.
const (
	VerdictAccepted             Verdict = "Accepted"
	VerdictGone                 Verdict = "Gone"                 // 404: the pod is not there
	VerdictReplaced             Verdict = "Replaced"             // 409 on the pod: another UID
	VerdictBudgetExhausted      Verdict = "BudgetExhausted"      // 429 with cause DisruptionBudget
	VerdictBudgetStale          Verdict = "BudgetStale"          // 429 with that cause and Retry-After: status older than spec
	VerdictBudgetContended      Verdict = "BudgetContended"      // 409 on the budget, or 504 of an update that kept conflicting
	VerdictMultipleBudgets      Verdict = "MultipleBudgets"      // 500 of a pod under two budgets
	VerdictNamespaceTerminating Verdict = "NamespaceTerminating" // 403 with that cause
	VerdictAdmissionDenied      Verdict = "AdmissionDenied"      // an admission webhook or policy said no
	VerdictForbidden            Verdict = "Forbidden"            // the right is missing
	VerdictOverloaded           Verdict = "Overloaded"           // 429 without a cause, 503: ask less, globally
	VerdictUnknown              Verdict = "Unknown"              // no answer, time-out, 5xx: it may have been accepted
	VerdictRejected             Verdict = "Rejected"             // anything else that the server says about the request itself
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
}
