// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"k8s.io/utils/ptr"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// TestMissingRights shows that the lack of a right is not taken for an admission's refusal.
func TestMissingRights(t *testing.T) {
	answersAreUnderstood(t, []answerCase{
		{"no right", drain.Answer{Verdict: "Forbidden", Code: 403, Message: "pods/eviction"}, func(t *testing.T, c *cluster) error {
			config := c.env.User(t, "nobody")
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), refTo(c.runs(t, "app", "")), nil)
		}},
		{"the pod of another node", drain.Answer{Verdict: "Forbidden", Code: 403}, func(t *testing.T, c *cluster) error {
			config := c.env.User(t, "system:node:here", "system:nodes")
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), refTo(c.runs(t, "app", "elsewhere")), nil)
		}},
		{"unknown user", drain.Answer{Verdict: "Forbidden", Code: 401}, func(t *testing.T, c *cluster) error {
			config := c.env.Config()
			config.CertData, config.KeyData, config.BearerToken = nil, nil, "nonsense"
			return newClient(t, config, kube.ClientOptions{}).Evict(t.Context(), refTo(c.runs(t, "app", "")), nil)
		}},
	})
}

// TestRefusalsByWebhooks shows what a webhook's refusal is, whatever code it comes with: the pod's affair, and not the whole server's.
// Webhooks that evacuate a pod themselves answer 429, so that kubectl asks again.
func TestRefusalsByWebhooks(t *testing.T) {
	denied := func(code int32, message string, refusal metav1.Status) answerCase {
		want := drain.Answer{Verdict: "AdmissionDenied", Code: int(code), Message: message}
		return answerCase{message, want, func(t *testing.T, c *cluster) error { return c.refusedByWebhook(t, &refusal) }}
	}
	answersAreUnderstood(t, []answerCase{
		denied(400, "without explanation", metav1.Status{}),
		denied(400, "because", metav1.Status{Message: "because"}),
		denied(403, "bare 403", metav1.Status{Code: 403, Message: "bare 403"}),
		denied(403, "forbidden", metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "forbidden"}),
		denied(404, "not found", metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Message: "not found"}),
		denied(409, "conflict", metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: "conflict"}),
		denied(422, "invalid", metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "invalid"}),
		denied(429, "evacuating", metav1.Status{Code: 429, Message: "evacuating"}),
		denied(429, "evacuating still", metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "evacuating still"}),
		denied(503, "not now", metav1.Status{Code: 503, Message: "not now"}),
		{"500 is like two budgets", drain.Answer{Verdict: "MultipleBudgets", Code: 500}, func(t *testing.T, c *cluster) error {
			return c.refusedByWebhook(t, &metav1.Status{Code: 500, Message: "broken"})
		}},
	})
}

// refusedByWebhook evicts a pod that a webhook guards.
func (c *cluster) refusedByWebhook(t *testing.T, refusal *metav1.Status) error {
	t.Helper()
	pod := refTo(c.runs(t, "app", ""))
	c.webhook(t, admissionregistrationv1.Create, "", "pods/eviction", func(*admissionv1.AdmissionRequest) *metav1.Status { return refusal })
	return c.onceRefused(t, pod)
}

// onceRefused asks until the server knows the guard that was just made, and returns its refusal.
func (c *cluster) onceRefused(t *testing.T, pod drain.PodRef) error {
	t.Helper()
	client := newClient(t, c.env.Config(), kube.ClientOptions{})
	eventually(t, func() string {
		if client.DryRunEvict(t.Context(), pod) == nil {
			return "the eviction is not refused"
		}
		return ""
	})
	return client.Evict(t.Context(), pod, nil)
}

// TestRefusalsByPolicies shows the same for policies, and for a webhook that can't be called.
func TestRefusalsByPolicies(t *testing.T) {
	denied := func(name string, code int, reason *metav1.StatusReason) answerCase {
		want := drain.Answer{Verdict: "AdmissionDenied", Code: code, Message: "not on Fridays"}
		return answerCase{name, want, func(t *testing.T, c *cluster) error { return c.refusedByPolicy(t, "false", reason) }}
	}
	answersAreUnderstood(t, []answerCase{
		denied("no reason", 422, nil),
		denied("forbidden", 403, ptr.To(metav1.StatusReasonForbidden)),
		denied("too large", 413, ptr.To(metav1.StatusReasonRequestEntityTooLarge)),
		{"broken policy", drain.Answer{Verdict: "AdmissionDenied", Code: 422}, func(t *testing.T, c *cluster) error {
			return c.refusedByPolicy(t, "object.metadata.labels['x'] == 'y'", nil)
		}},
		{"broken webhook", drain.Answer{Verdict: "Unknown", Code: 500}, func(t *testing.T, c *cluster) error {
			pod := refTo(c.runs(t, "app", ""))
			c.register(t, "https://127.0.0.1:1", admissionregistrationv1.Create, "", "pods/eviction")
			return c.onceRefused(t, pod)
		}},
	})
}

// refusedByPolicy evicts a pod that a ValidatingAdmissionPolicy guards.
func (c *cluster) refusedByPolicy(t *testing.T, expression string, reason *metav1.StatusReason) error {
	t.Helper()
	pod := refTo(c.runs(t, "app", ""))
	api := c.admin.AdmissionregistrationV1()
	_, err := api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: "not on Fridays", Reason: reason}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: c.namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": c.namespace}},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return c.onceRefused(t, pod)
}
