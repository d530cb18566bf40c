// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

const (
	callTimeout = 10 * time.Second // for one call of the API server
	pollEvery   = 20 * time.Millisecond
)

// Config returns the configuration of an administrator's client, without client-side throttling. The caller owns
// the copy.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (e *Env) Kubeconfig() string { return e.kubeconfig }

// NewUser returns the configuration of a client that the API server knows, by a certificate, as the user in the
// groups. It has no rights but those that RBAC gives it; system:authenticated is always among its groups.
func (e *Env) NewUser(name string, groups ...string) (*rest.Config, error) {
	pair, err := e.pki.cluster.client(name, groups...)
	if err != nil {
		return nil, err
	}
	return e.clientConfig(pair), nil
}

func (e *Env) clientConfig(pair keyPair) *rest.Config {
	return &rest.Config{
		Host: "https://" + address(e.ports[APIServer]),
		QPS:  -1, // the API server's own fairness is the limit
		TLSClientConfig: rest.TLSClientConfig{
			CAData: e.pki.cluster.certPEM, CertData: pair.cert, KeyData: pair.key,
		},
	}
}

// WriteKubeconfig writes config, whose certificates or token must be inline, to a kubeconfig with mode 0600 for a
// process that reads one.
func WriteKubeconfig(path string, config *rest.Config) error {
	return kubeconfig.Write(path, config)
}

// bootstrap makes the namespace default usable.
func (e *Env) bootstrap(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(e.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return e.admitPods(ctx, client, metav1.NamespaceDefault)
}

// admitPods waits until the namespace is there and makes its default service account, without which the API server
// refuses every pod. Where there is a controller manager, either of the two may come first.
func (e *Env) admitPods(ctx context.Context, client kubernetes.Interface, namespace string) error {
	accounts := client.CoreV1().ServiceAccounts(namespace)
	return poll(ctx, fmt.Sprintf("the default service account of %q", namespace), func(ctx context.Context) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := accounts.Create(ctx, account, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// poll calls done, each time with a deadline, until it returns nil or ctx ends.
func poll(ctx context.Context, what string, done func(context.Context) error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		err := done(callCtx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w)", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
