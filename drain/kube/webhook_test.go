// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/utils/ptr"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhook registers an admission webhook for a subresource in the cluster's namespace. What answer returns is the refusal, nil allows.
func (c *cluster) webhook(t *testing.T, operation admissionregistrationv1.OperationType, group, resource string,
	answer func(*admissionv1.AdmissionRequest) *metav1.Status,
) {
	t.Helper()
	c.register(t, serveWebhook(t, c, answer), operation, group, resource)
}

// register makes the API server ask the webhook at url.
func (c *cluster) register(t *testing.T, url string, operation admissionregistrationv1.OperationType, group, resource string) {
	t.Helper()
	ca, err := os.ReadFile(c.env.CAFile())
	must(t, err)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "guard.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": c.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{operation},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
				},
			}},
		}},
	}
	_, err = c.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{})
	must(t, err)
}

// serveWebhook returns the URL at which answer is asked.
func serveWebhook(t *testing.T, c *cluster, answer func(*admissionv1.AdmissionRequest) *metav1.Status) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	must(t, c.env.WriteServerCert(cert, key))
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		refusal := answer(review.Request)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == nil, Result: refusal}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answering a review: %v", err)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
