// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAnswerMessage bounds [Answer].Message, in bytes. Webhooks write what they like.
const maxAnswerMessage = 1024

// Classify says what the result of an eviction means. It looks at codes, reasons, kinds and causes, never at the words of a message.
//
//   - nil is Accepted. What is no answer of a server, such as a lost connection or an ended context, is Unknown:
//     the server may have accepted.
//   - A server's own errors carry details, a refusal by an admission webhook carries none, a refusal by an admission policy has a cause
//     without a type. So a webhook that answers 429 to hold a pod back is AdmissionDenied for that pod alone, and not
//     Overloaded.
//   - Gone is a missing pod or namespace. A path that the server doesn't know is Rejected, a budget that was deleted
//     meanwhile is BudgetContended.
//
// Three answers can't be told apart. A webhook that denies with code 500 and no reason reads like MultipleBudgets: who knows
// the pod's budgets knows better. One whose match condition fails, or an API server that is about to start, reads like
// Forbidden. And a pod that became ready while it was being evicted reads like BudgetStale.
func Classify(err error) Answer {
	if err == nil {
		return Answer{Verdict: verdictAccepted, Code: http.StatusCreated}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Answer{Verdict: verdictUnknown, Message: bounded(err.Error())}
	}
	s := status.Status()
	a := Answer{Verdict: verdictOf(s), Code: int(s.Code), Message: s.Message}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		a.RetryAfter = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	if c := causeOf(s, policyv1.DisruptionBudgetCause); c != nil && c.Message != "" {
		a.Message += " " + c.Message // only the cause names the budget and its numbers
	}
	a.Message = bounded(a.Message)
	return a
}

func verdictOf(s metav1.Status) Verdict {
	switch {
	case s.Code == http.StatusForbidden && causeOf(s, corev1.NamespaceTerminatingCause) != nil:
		return verdictNamespaceTerminating
	case deniedByAdmission(s):
		return verdictAdmissionDenied
	case s.Code >= 400 && s.Code < 500:
		return verdictOfRefusal(s)
	case s.Code == http.StatusInternalServerError:
		return verdictOfInternalError(s)
	case s.Code == http.StatusServiceUnavailable:
		return verdictOverloaded
	case s.Code == http.StatusGatewayTimeout:
		return verdictOfTimeout(s)
	default:
		return verdictUnknown
	}
}

// verdictOfRefusal is for codes from 400 to 499 that are not of admission.
func verdictOfRefusal(s metav1.Status) Verdict {
	switch s.Code {
	case http.StatusTooManyRequests:
		return verdictOfTooMany(s)
	case http.StatusUnauthorized:
		return verdictForbidden
	case http.StatusForbidden:
		if isKind(s, "poddisruptionbudget") { // it has more evictions to confirm than the server lets it have
			return verdictBudgetStale
		}
		return verdictForbidden
	case http.StatusConflict:
		return verdictOfObject(s, verdictReplaced)
	case http.StatusNotFound:
		return verdictOfObject(s, verdictGone)
	default:
		return verdictRejected
	}
}

// verdictOfTooMany tells the budget from the server's overload. Only a budget with an old status comes with a time to wait.
func verdictOfTooMany(s metav1.Status) Verdict {
	switch {
	case causeOf(s, policyv1.DisruptionBudgetCause) == nil:
		return verdictOverloaded
	case s.Details.RetryAfterSeconds > 0:
		return verdictBudgetStale
	default:
		return verdictBudgetExhausted
	}
}

// verdictOfObject is for a conflict with, or the absence of, the object that the details name: pod is the verdict when it is the pod.
func verdictOfObject(s metav1.Status, pod Verdict) Verdict {
	switch {
	case causeOf(s, metav1.CauseTypeUnexpectedServerResponse) != nil: // said by no API server: the kind is the client's guess
		return verdictRejected
	case isKind(s, "pod"):
		return pod
	case isKind(s, "poddisruptionbudget"):
		return verdictBudgetContended
	case isKind(s, "namespace") && s.Code == http.StatusNotFound:
		return verdictGone
	default:
		return verdictRejected
	}
}

// verdictOfInternalError knows the one error of the eviction API that the server builds by hand: it has a code and a message.
func verdictOfInternalError(s metav1.Status) Verdict {
	if s.Reason == metav1.StatusReasonUnknown && s.Details == nil {
		return verdictMultipleBudgets
	}
	return verdictUnknown
}

// verdictOfTimeout tells an eviction that ended, as it lost every race for the budget, from one that still runs at the server: only
// the first names a time to wait.
func verdictOfTimeout(s metav1.Status) Verdict {
	if s.Reason == metav1.StatusReasonTimeout && s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		return verdictBudgetContended
	}
	return verdictUnknown
}

// deniedByAdmission knows a webhook by what its answers lack and a policy by its cause. The server itself has a few answers without
// details, with reasons that say what is wrong with the request; without a reason it has only the one of several budgets.
func deniedByAdmission(s metav1.Status) bool {
	refused := s.Code >= 400 && s.Code < 500
	if s.Details == nil && s.Reason == metav1.StatusReasonUnknown {
		return refused || s.Code > http.StatusInternalServerError
	}
	if s.Details == nil {
		return refused && s.Reason != metav1.StatusReasonBadRequest && s.Reason != metav1.StatusReasonUnauthorized
	}
	return refused && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == "" && c.Field == "" && c.Message != "" })
}

func causeOf(s metav1.Status, t metav1.CauseType) *metav1.StatusCause {
	if s.Details == nil {
		return nil
	}
	for i := range s.Details.Causes {
		if s.Details.Causes[i].Type == t {
			return &s.Details.Causes[i]
		}
	}
	return nil
}

// isKind compares with the kind of the details, in which servers write the kind or the resource.
func isKind(s metav1.Status, kind string) bool {
	if s.Details == nil {
		return false
	}
	got := strings.ToLower(s.Details.Kind)
	return got == kind || got == kind+"s"
}

func bounded(message string) string {
	if len(message) <= maxAnswerMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxAnswerMessage], "")
}
