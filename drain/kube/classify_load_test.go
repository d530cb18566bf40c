// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// TestContendedBudgets makes somebody come in between each read and write of the budget by the server. A webhook on the budget's status
// plays the other evictions, so that the race is lost each time. The client
// waits for the server's answer to the end. R-DR-19.
func TestContendedBudgets(t *testing.T) {
	// contended evicts a pod while meanwhile runs in each of the server's writes of the budget.
	contended := func(t *testing.T, c *cluster, meanwhile func(n int)) error {
		pod := refTo(c.runs(t, "app", ""))
		c.guards(t, "guard", "app", func(*policyv1.PodDisruptionBudgetStatus) {})
		var n atomic.Int32
		c.webhook(t, admissionregistrationv1.Update, "policy", "poddisruptionbudgets/status", func(r *admissionv1.AdmissionRequest) *metav1.Status {
			if k := int(n.Add(1)); r.UserInfo.Username == "system:apiserver" {
				meanwhile(k)
			}
			return nil
		})
		c.awaitWebhook(t, &n)
		return c.evict(t, pod)
	}
	touched := func(t *testing.T, c *cluster) func(int) {
		return func(n int) {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, n)
			budgets := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace)
			if _, err := budgets.Patch(t.Context(), "guard", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && t.Context().Err() == nil {
				t.Errorf("touching the budget: %v", err)
			}
		}
	}
	answersAreUnderstood(t, []answerCase{
		{"conflict", drain.Answer{Verdict: "BudgetContended", Code: 409, Message: "guard"}, func(t *testing.T, c *cluster) error {
			return contended(t, c, touched(t, c))
		}},
		{"deleted meanwhile", drain.Answer{Verdict: "BudgetContended", Code: 404, Message: "guard"}, func(t *testing.T, c *cluster) error {
			return contended(t, c, func(int) {
				err := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace).Delete(t.Context(), "guard", metav1.DeleteOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Errorf("deleting the budget: %v", err)
				}
			})
		}},
		{"out of the server's time", drain.Answer{Verdict: "Unknown", Code: 504}, func(t *testing.T, c *cluster) error {
			touch := touched(t, c)
			return contended(t, c, func(n int) {
				select {
				case <-time.After(2 * time.Second): // of the 34 s that the server gives itself
				case <-t.Context().Done():
				}
				touch(n)
			})
		}},
	})
}

// awaitWebhook writes the budget's status until the webhook has been asked once.
func (c *cluster) awaitWebhook(t *testing.T, asked *atomic.Int32) {
	t.Helper()
	n := 0
	eventually(t, func() string {
		n++
		patch := fmt.Appendf(nil, `{"status":{"expectedPods":%d}}`, n)
		_, err := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace).Patch(
			t.Context(), "guard", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		must(t, err)
		if asked.Load() == 0 {
			return "the webhook is not asked"
		}
		return ""
	})
}

// TestOverload shows that the server's own 429 is told from a budget's, and its wish is kept. R-DR-19. The server has one seat for this
// user, and a webhook keeps the eviction of another pod sitting on it.
func TestOverload(t *testing.T) {
	answersAreUnderstood(t, []answerCase{
		{"no seat", drain.Answer{Verdict: "Overloaded", Code: 429, RetryAfter: time.Second}, func(t *testing.T, c *cluster) error {
			user := c.namespace
			pod, slow := refTo(c.runs(t, "app", "")), refTo(c.runs(t, "slow", ""))
			sitting := make(chan struct{})
			c.webhook(t, admissionregistrationv1.Create, "", "pods/eviction", func(r *admissionv1.AdmissionRequest) *metav1.Status {
				if r.Name == "slow" {
					select {
					case sitting <- struct{}{}:
					case <-t.Context().Done():
					}
					<-t.Context().Done()
				}
				return nil
			})
			flow := c.crowd(t, user)
			var served atomic.Value
			client := newClient(t, through(c.env.User(t, user), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					served.Store(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
				}
				return response, err
			}), kube.ClientOptions{})
			eventually(t, func() string {
				if err := client.DryRunEvict(t.Context(), pod); err != nil || served.Load() != string(flow) {
					return fmt.Sprintf("served by flow %v with %v, want %s", served.Load(), err, flow)
				}
				return ""
			})
			go client.Evict(t.Context(), slow, nil) // it gets no answer
			<-sitting
			return client.Evict(t.Context(), pod, nil)
		}},
	})
}

// crowd makes a priority level with one seat for a user who may evict, and returns the UID of its flow schema.
func (c *cluster) crowd(t *testing.T, user string) types.UID {
	t.Helper()
	flows := c.admin.FlowcontrolV1()
	_, err := flows.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To(int32(0)), BorrowingLimitPercent: ptr.To(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	subject := flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}
	flow, err := flows.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: user}, MatchingPrecedence: 100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{subject},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	c.allow(t, user, rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/eviction"}})
	return flow.UID
}

// TestLostAnswers shows that a request without an answer may have had its effect: the pod goes, and nobody was told so.
func TestLostAnswers(t *testing.T) {
	lost := func(end func(r *http.Request) error) func(t *testing.T, c *cluster) error {
		return func(t *testing.T, c *cluster) error {
			pod := c.runs(t, "app", "elsewhere")
			config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					response.Body.Close()
					err = end(r)
				}
				return nil, err
			})
			err := newClient(t, config, kube.ClientOptions{Timeout: 2 * time.Second}).Evict(t.Context(), refTo(pod), nil)
			now, getErr := c.admin.CoreV1().Pods(c.namespace).Get(t.Context(), "app", metav1.GetOptions{})
			must(t, getErr)
			if now.DeletionTimestamp == nil {
				t.Error("the eviction had no effect")
			}
			return err
		}
	}
	unknown := drain.Answer{Verdict: "Unknown"}
	answersAreUnderstood(t, []answerCase{
		{"connection lost", unknown, lost(func(*http.Request) error { return io.ErrUnexpectedEOF })},
		{"deadline", unknown, lost(func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() })},
		{"nobody listens", unknown, func(t *testing.T, c *cluster) error {
			config := c.env.Config()
			config.Host = "https://127.0.0.1:1"
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), refTo(c.runs(t, "app", "")), nil)
		}},
		{"cancelled", unknown, func(t *testing.T, c *cluster) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := newClient(t, c.env.Config(), kube.ClientOptions{}).Evict(ctx, drain.PodRef{Namespace: c.namespace, Name: "app", UID: "u"}, nil)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's error", err)
			}
			return err
		}},
	})
}
