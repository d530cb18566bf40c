// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// answerCase is one way to make the API server answer an eviction.
type answerCase struct {
	name    string
	want    drain.Answer // its Message is a part of the message
	evicted func(t *testing.T, c *cluster) error
}

// answersAreUnderstood asks a real API server, and shows that its answer gets the verdict.
func answersAreUnderstood(t *testing.T, cases []answerCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.evicted(t, newCluster(t))
			got := drain.Classify(err)
			if got.Verdict != tc.want.Verdict || got.Code != tc.want.Code || got.RetryAfter != tc.want.RetryAfter {
				t.Errorf("got %+v, want %+v; the server said %s", got, tc.want, said(err))
			}
			if !strings.Contains(got.Message, tc.want.Message) {
				t.Errorf("got the message %q, want %q in it", got.Message, tc.want.Message)
			}
			t.Logf("%s", said(err))
		})
	}
}

func said(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "nothing: " + errorText(err)
	}
	text, _ := json.Marshal(status.Status())
	return string(text)
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// through sends every request through f.
func through(config *rest.Config, f func(next http.RoundTripper, r *http.Request) (*http.Response, error)) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return f(next, r.Clone(r.Context())) })
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// evict evicts as the administrator.
func (c *cluster) evict(t *testing.T, pod drain.PodRef) error {
	t.Helper()
	return newClient(t, c.env.Config(), kube.ClientOptions{}).Evict(t.Context(), pod, nil)
}

// TestAnswersOfTheEvictionAPI drives the API server into each of its own answers. R-DR-02, R-DR-19.
func TestAnswersOfTheEvictionAPI(t *testing.T) {
	answersAreUnderstood(t, []answerCase{
		{"accepted", drain.Answer{Verdict: "Accepted", Code: 201}, func(t *testing.T, c *cluster) error {
			return c.evict(t, refTo(c.runs(t, "app", "")))
		}},
		{"accepted again", drain.Answer{Verdict: "Accepted", Code: 201}, func(t *testing.T, c *cluster) error {
			pod := c.runs(t, "app", "elsewhere", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(600)) })
			must(t, c.evict(t, refTo(pod)))
			return c.evict(t, refTo(pod))
		}},
		{"no pod", drain.Answer{Verdict: "Gone", Code: 404, Message: `"app" not found`}, func(t *testing.T, c *cluster) error {
			return c.evict(t, drain.PodRef{Namespace: c.namespace, Name: "app", UID: "u"})
		}},
		{"no namespace", drain.Answer{Verdict: "Gone", Code: 404}, func(t *testing.T, c *cluster) error {
			return c.evict(t, drain.PodRef{Namespace: "nowhere", Name: "app", UID: "u"})
		}},
		{"another pod", drain.Answer{Verdict: "Replaced", Code: 409, Message: "UID"}, func(t *testing.T, c *cluster) error {
			ref := refTo(c.runs(t, "app", ""))
			ref.UID = "another"
			return c.evict(t, ref)
		}},
		{"another name", drain.Answer{Verdict: "Rejected", Code: 400, Message: "name"}, func(t *testing.T, c *cluster) error {
			ref := refTo(c.runs(t, "app", ""))
			config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				r.URL.Path = strings.Replace(r.URL.Path, "/app/", "/other/", 1)
				return next.RoundTrip(r)
			})
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), ref, nil)
		}},
		{"another server", drain.Answer{Verdict: "Rejected", Code: 404}, func(t *testing.T, c *cluster) error {
			config := c.env.Config()
			config.Host += "/nowhere"
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), refTo(c.runs(t, "app", "")), nil)
		}},
		{"ending namespace", drain.Answer{Verdict: "NamespaceTerminating", Code: 403}, func(t *testing.T, c *cluster) error {
			pod := c.runs(t, "app", "elsewhere")
			must(t, c.admin.CoreV1().Namespaces().Delete(t.Context(), c.namespace, metav1.DeleteOptions{}))
			return c.evict(t, refTo(pod))
		}},
	})
}

// TestAnswersAboutBudgets drives the API server into each answer about a PodDisruptionBudget. R-DR-02.
func TestAnswersAboutBudgets(t *testing.T) {
	with := func(change func(*policyv1.PodDisruptionBudgetStatus)) func(t *testing.T, c *cluster) error {
		return func(t *testing.T, c *cluster) error {
			pod := c.runs(t, "app", "")
			c.guards(t, "guard", "app", change)
			return c.evict(t, refTo(pod))
		}
	}
	answersAreUnderstood(t, []answerCase{
		{"allows", drain.Answer{Verdict: "Accepted", Code: 201}, with(func(*policyv1.PodDisruptionBudgetStatus) {})},
		{"empty", drain.Answer{Verdict: "BudgetExhausted", Code: 429, Message: "guard needs 1 healthy pods and has 1"},
			with(func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed, s.CurrentHealthy = 0, 1 })},
		{"older than its spec", drain.Answer{Verdict: "BudgetStale", Code: 429, RetryAfter: 10 * time.Second, Message: "guard"},
			with(func(s *policyv1.PodDisruptionBudgetStatus) { s.ObservedGeneration = 0 })},
		{"too much to confirm", drain.Answer{Verdict: "BudgetStale", Code: 403, Message: "guard"},
			with(func(s *policyv1.PodDisruptionBudgetStatus) {
				s.DisruptedPods = map[string]metav1.Time{}
				for i := range 2001 {
					s.DisruptedPods[fmt.Sprintf("gone-%d", i)] = metav1.Now()
				}
			})},
		{"two of them", drain.Answer{Verdict: "MultipleBudgets", Code: 500, Message: "more than one"}, func(t *testing.T, c *cluster) error {
			pod := c.runs(t, "app", "")
			for _, name := range []string{"one", "two"} {
				c.guards(t, name, "app", func(*policyv1.PodDisruptionBudgetStatus) {})
			}
			return c.evict(t, refTo(pod))
		}},
	})
}
