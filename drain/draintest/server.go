// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/backoff"
)

// settleTime is how long a real controller may take for what the one in memory does at once. It is well beyond the longest that a rule itself waits, which is
// 20 s, until an entry of a budget is dropped.
const settleTime = time.Minute

// A serverCase is one rule of the API server.
type serverCase struct {
	rule string
	test func(s server)
}

// A server is a fixture within one test.
type server struct {
	Fixture
	t    *testing.T
	rule string
	ns   string
}

// TestServer checks a fixture against the rules by which the API server evicts and the disruption controller counts, one test for each.
// Around, where given, runs each of them; pass synctest.Test for a fixture that lives in a bubble.
func TestServer(t *testing.T, fixture func(t *testing.T) Fixture, around ...func(*testing.T, func(*testing.T))) {
	t.Helper()
	cases := slices.Concat(evictionCases(), oddCases(), unguardedCases(), unreadyCases(), deletionCases(), controllerCases(), patchCases())
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			run := func(t *testing.T) {
				f := fixture(t)
				c.test(server{Fixture: f, t: t, rule: c.rule, ns: f.Namespace(t)})
			}
			for _, wrap := range around {
				inner := run
				run = func(t *testing.T) { wrap(t, inner) }
			}
			run(t)
		})
	}
}

func (s server) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("rule %q: %s", s.rule, fmt.Sprintf(format, args...))
}

// An answer is what is compared of an answer of the server.
type answer struct {
	code       int32
	reason     metav1.StatusReason
	kind       string // of the details
	cause      metav1.CauseType
	retryAfter int32
	says       string // a part of the message or of the cause's
	// saysOlder is what API servers before 1.35 say instead; empty for the same. No part of belay depends on a text.
	saysOlder string
}

// answerOf takes an error apart. An error that is no answer has code -1.
func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answer{code: -1, says: err.Error()}
	}
	st := status.Status()
	a := answer{code: st.Code, reason: st.Reason, says: st.Message}
	if d := st.Details; d != nil {
		a.kind, a.retryAfter = d.Kind, d.RetryAfterSeconds
		for _, cause := range d.Causes {
			a.cause = cause.Type
			a.says += " | " + cause.Message
		}
	}
	return a
}

// wants compares an answer with what the rule says.
func (s server) wants(what string, err error, want answer) {
	s.t.Helper()
	got := answerOf(err)
	if !strings.Contains(got.says, want.says) && (want.saysOlder == "" || !strings.Contains(got.says, want.saysOlder)) {
		s.errorf("%s: got the answer %q, want it to say %q", what, got.says, want.says)
	}
	got.says, want.says, want.saysOlder = "", "", ""
	if got != want {
		s.errorf("%s: got %+v (%v), want %+v", what, got, err, want)
	}
}

// eventually waits until check returns nil.
func (s server) eventually(what string, check func() error) {
	s.t.Helper()
	deadline := time.Now().Add(settleTime)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.errorf("%s: after %v: %v", what, settleTime, err)
			return
		}
		if !backoff.Sleep(s.t.Context(), 10*time.Millisecond) {
			s.t.Fatalf("rule %q: %s: the test ended: %v", s.rule, what, err)
		}
	}
}

// A count is the part of a budget's status that the controller computes.
type count struct {
	expected, desired, healthy, allowed int32
	disrupted                           string // names, separated by commas
}

func countOf(b *policyv1.PodDisruptionBudget) count {
	names := make([]string, 0, len(b.Status.DisruptedPods))
	for name := range b.Status.DisruptedPods {
		names = append(names, name)
	}
	slices.Sort(names)
	return count{
		b.Status.ExpectedPods, b.Status.DesiredHealthy, b.Status.CurrentHealthy, b.Status.DisruptionsAllowed, strings.Join(names, ","),
	}
}

// counts waits until the budget's status is as the rule says, and of the current spec.
func (s server) counts(name string, want count) {
	s.t.Helper()
	s.eventually("status of budget "+name, func() error {
		b := s.GetBudget(s.t, s.ns, name)
		if got := countOf(b); got != want {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
		if b.Status.ObservedGeneration != b.Generation {
			return fmt.Errorf("got observed generation %d, want %d", b.Status.ObservedGeneration, b.Generation)
		}
		return nil
	})
}

// frozen creates a budget for app=web with a status that no controller will change.
func (s server) frozen(name string, want count, changes ...func(*policyv1.PodDisruptionBudget)) {
	s.t.Helper()
	s.Controller(s.t, false)
	s.Budget(s.t, MinAvailable(s.ns, name, "1", web(), changes...))
	generation := s.GetBudget(s.t, s.ns, name).Generation
	s.SetBudgetStatus(s.t, s.ns, name, func(st *policyv1.PodDisruptionBudgetStatus) {
		st.ExpectedPods, st.DesiredHealthy, st.CurrentHealthy, st.DisruptionsAllowed = want.expected, want.desired, want.healthy, want.allowed
		st.ObservedGeneration = generation
		status, reason := metav1.ConditionFalse, policyv1.InsufficientPodsReason
		if want.allowed > 0 {
			status, reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
		}
		st.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, ObservedGeneration: st.ObservedGeneration,
			LastTransitionTime: stamp(time.Now()),
		}}
	})
}

// has compares a budget's status as it is now.
func (s server) has(name string, want count) {
	s.t.Helper()
	if got := countOf(s.GetBudget(s.t, s.ns, name)); got != want {
		s.errorf("status of budget %s: got %+v, want %+v", name, got, want)
	}
}

func web() map[string]string { return map[string]string{"app": "web"} }

const otherPodUID = types.UID("00000000-0000-4000-8000-000000000000")

// budgetCause is what answers of budgets have in common.
func budgetAnswer(retryAfter int32, says string) answer {
	return answer{
		code: 429, reason: metav1.StatusReasonTooManyRequests, cause: policyv1.DisruptionBudgetCause, retryAfter: retryAfter,
		says: cmp.Or(says, whyRefused),
	}
}

func podConflict() answer {
	return answer{code: 409, reason: metav1.StatusReasonConflict, kind: "Pod", says: "the UID in the precondition"}
}
