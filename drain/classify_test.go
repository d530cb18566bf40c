// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/drain"
)

// TestClassifyRecordedAnswers holds what an API server 1.36 has said; package drain/kube asks one again. R-DR-19.
func TestClassifyRecordedAnswers(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         drain.Answer
	}{
		{"no pod", `{"reason":"NotFound","details":{"name":"app","kind":"pods"},"code":404}`, drain.Answer{Verdict: "Gone"}},
		{"no namespace", `{"reason":"NotFound","details":{"name":"nowhere","kind":"namespaces"},"code":404}`, drain.Answer{Verdict: "Gone"}},
		{"no such path",
			`{"reason":"NotFound","details":{"name":"app","kind":"pods","causes":[{"reason":"UnexpectedServerResponse","message":"404"}]},"code":404}`,
			drain.Answer{Verdict: "Rejected"}},
		{"another UID", `{"reason":"Conflict","details":{"name":"app","kind":"Pod"},"code":409}`, drain.Answer{Verdict: "Replaced"}},
		{"another name", `{"reason":"BadRequest","code":400}`, drain.Answer{Verdict: "Rejected"}},
		{"namespace ends",
			`{"reason":"Forbidden","details":{"name":"app","kind":"pods","causes":[{"reason":"NamespaceTerminating","message":"ending"}]},"code":403}`,
			drain.Answer{Verdict: "NamespaceTerminating"}},
		{"budget empty",
			`{"message":"no.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"needs 1"}]},"code":429}`,
			drain.Answer{Verdict: "BudgetExhausted", Message: "no. needs 1"}},
		{"budget stale",
			`{"reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget"}],"retryAfterSeconds":10},"code":429}`,
			drain.Answer{Verdict: "BudgetStale", RetryAfter: 10 * time.Second}},
		{"budget overfull", `{"reason":"Forbidden","details":{"name":"guard","group":"policy","kind":"poddisruptionbudget"},"code":403}`,
			drain.Answer{Verdict: "BudgetStale"}},
		{"budget contended", `{"reason":"Conflict","details":{"name":"guard","group":"policy","kind":"poddisruptionbudgets"},"code":409}`,
			drain.Answer{Verdict: "BudgetContended"}},
		{"budget deleted", `{"reason":"NotFound","details":{"name":"guard","group":"policy","kind":"poddisruptionbudgets"},"code":404}`,
			drain.Answer{Verdict: "BudgetContended"}},
		{"two budgets", `{"code":500}`, drain.Answer{Verdict: "MultipleBudgets"}},
		{"still at it after 34 s", `{"reason":"Timeout","details":{},"code":504}`, drain.Answer{Verdict: "Unknown"}},
		{"no right", `{"reason":"Forbidden","details":{"name":"app","kind":"pods"},"code":403}`, drain.Answer{Verdict: "Forbidden"}},
		{"no user", `{"reason":"Unauthorized","code":401}`, drain.Answer{Verdict: "Forbidden"}},
		{"policy",
			`{"reason":"Invalid","details":{"name":"app","kind":"pods","causes":[{"message":"not on Fridays"}]},"code":422}`,
			drain.Answer{Verdict: "AdmissionDenied"}},
		{"policy with a reason",
			`{"reason":"Forbidden","details":{"name":"app","kind":"pods","causes":[{"message":"not on Fridays"}]},"code":403}`,
			drain.Answer{Verdict: "AdmissionDenied"}},
		{"webhook", `{"reason":"Forbidden","code":403}`, drain.Answer{Verdict: "AdmissionDenied"}},
		{"webhook without a word", `{"code":400}`, drain.Answer{Verdict: "AdmissionDenied"}},
		{"webhook that evacuates", `{"code":429}`, drain.Answer{Verdict: "AdmissionDenied"}},
		{"webhook with 503", `{"code":503}`, drain.Answer{Verdict: "AdmissionDenied"}},
		{"webhook out of reach", `{"reason":"InternalError","details":{"causes":[{"message":"refused"}]},"code":500}`,
			drain.Answer{Verdict: "Unknown"}},
		{"overload",
			`{"reason":"TooManyRequests","details":{"kind":"pods","causes":[{"reason":"UnexpectedServerResponse"}],"retryAfterSeconds":1},"code":429}`,
			drain.Answer{Verdict: "Overloaded", RetryAfter: time.Second}},
	} {
		status := &apierrors.StatusError{}
		if err := json.Unmarshal([]byte(c.status), &status.ErrStatus); err != nil {
			t.Fatal(err)
		}
		c.want.Code = int(status.ErrStatus.Code)
		if got := drain.Classify(fmt.Errorf("evicting: %w", status)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestClassifyOtherErrors shows verdicts of errors that are no answer, and of answers that no test can draw out of a server.
func TestClassifyOtherErrors(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	gateway := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "post", pods, "app", "", 0, true)
	}
	for _, c := range []struct {
		name string
		err  error
		want drain.Verdict
	}{
		{"none", nil, "Accepted"},
		{"deadline", context.DeadlineExceeded, "Unknown"},
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), "Unknown"},
		{"network", &net.OpError{Op: "dial", Err: errors.New("refused")}, "Unknown"},
		{"no quorum of etcd", apierrors.NewServerTimeout(pods, "create", 2), "Unknown"},
		{"shutting down", apierrors.NewServiceUnavailable("going"), "Overloaded"},
		{"a gateway's 503", gateway(503), "Overloaded"},
		{"a gateway's 502", gateway(502), "Unknown"},
		{"a gateway's 504", gateway(504), "Unknown"},
		{"a gateway's 500", gateway(500), "Unknown"},
		{"a gateway's 409", gateway(409), "Rejected"},
		{"a gateway's 403", gateway(403), "Forbidden"},
		{"a redirect", gateway(302), "Unknown"},
		{"another object", apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x"), "Rejected"},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Eviction"}, "app", nil), "Rejected"},
		{"every race for the budget lost", apierrors.NewTimeoutError("x", 10), "BudgetContended"},
		{"nothing said", &apierrors.StatusError{}, "Unknown"},
		{"beside others", errors.Join(errors.New("x"), apierrors.NewNotFound(pods, "app")), "Gone"},
	} {
		if got := drain.Classify(c.err); got.Verdict != c.want {
			t.Errorf("%s: got %+v, want %s", c.name, got, c.want)
		}
	}
}

// TestClassifyBoundsMessages shows that no webhook's novel gets into a status.
func TestClassifyBoundsMessages(t *testing.T) {
	long := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Message: "x" + strings.Repeat("é", 1024)}}
	for _, err := range []error{long, errors.New(long.ErrStatus.Message)} {
		got := drain.Classify(err).Message
		if len(got) > 1024 || len(got) < 1024-1 || strings.ToValidUTF8(got, "?") != got {
			t.Errorf("got %d bytes, %q at the end, want about %d, and whole letters", len(got), got[len(got)-4:], 1024)
		}
	}
}
