// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/backoff"
)

// A webhook is called for each eviction in the namespace of a run.
type webhook struct {
	name    string
	policy  admissionregistrationv1.FailurePolicyType
	timeout int32 // in seconds
	// answer returns the refusal, or nil to allow; or the status of HTTP of a webhook that fails. It is not called for
	// dry runs.
	answer func(ctx context.Context, pod string) (refusal *metav1.Status, failure int)

	reached atomic.Bool
}

// serveWebhook serves a webhook on 127.0.0.1, registers it, and returns once the API server calls it.
func (c *cluster) serveWebhook(ctx context.Context, w *webhook, pod string) error {
	cert, ca, err := newCertificate()
	if err != nil {
		return fmt.Errorf("creating the certificate of a webhook: %w", err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return fmt.Errorf("listening for a webhook: %w", err)
	}
	server := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	c.closes = append(c.closes, func(context.Context) error { return server.Close() })
	configs := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = configs.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: w.name, FailurePolicy: &w.policy, TimeoutSeconds: &w.timeout,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To("https://" + listener.Addr().String()), CABundle: ca,
			},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       c.namespaceSelector(),
			Rules:                   evictionRules(),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("registering a webhook: %w", err)
	}
	c.closes = append(c.closes, func(ctx context.Context) error {
		return configs.Delete(ctx, c.ns, metav1.DeleteOptions{})
	})
	return c.awaitAdmission(ctx, pod, func(error) bool { return w.reached.Load() })
}

func (c *cluster) namespaceSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": c.ns}}
}

func evictionRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"},
		},
	}}
}

// awaitAdmission sends dry runs until the API server has taken up a configuration.
func (c *cluster) awaitAdmission(ctx context.Context, pod string, active func(error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := c.dryRunEvict(ctx, pod)
		if active(err) {
			return nil
		}
		if !backoff.Sleep(ctx, stepInterval) {
			return fmt.Errorf("the API server has taken up no admission configuration for %v: %w", readyTimeout, err)
		}
	}
}

// dryRunEvict sends the dry run as a parameter: admission webhooks do not see one that is in the body alone.
func (c *cluster) dryRunEvict(ctx context.Context, pod string) error {
	dry := []string{metav1.DryRunAll}
	return c.client.CoreV1().RESTClient().Post().Namespace(c.ns).Resource("pods").Name(pod).SubResource("eviction").
		VersionedParams(&metav1.CreateOptions{DryRun: dry}, scheme.ParameterCodec).
		Body(&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod, Namespace: c.ns},
			DeleteOptions: &metav1.DeleteOptions{DryRun: dry},
		}).Do(ctx).Error()
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(out, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	var refusal *metav1.Status
	if review.Request.DryRun != nil && *review.Request.DryRun {
		w.reached.Store(true)
	} else {
		var failure int
		if refusal, failure = w.answer(r.Context(), review.Request.Name); failure != 0 {
			http.Error(out, "the webhook fails", failure)
			return
		}
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == nil, Result: refusal}
	review.Request = nil
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review) // the API server has gone where this fails
}

// newCertificate returns a certificate for 127.0.0.1 that signs itself, and its PEM.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operators"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	var ca bytes.Buffer
	if err := pem.Encode(&ca, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca.Bytes(), nil
}
