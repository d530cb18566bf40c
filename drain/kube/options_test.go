// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/kube"
)

// TestConstructorsNameAllThatIsMissing calls the constructors with nil, and with nil pointers in interfaces.
func TestConstructorsNameAllThatIsMissing(t *testing.T) {
	var noInformer *managed
	var noClient *kubernetes.Clientset
	fake := draintest.New(draintest.Options{})
	for want, call := range map[string]func() error{
		"drain/kube.NewCacheFromInformers: client is required (see k8s.io/client-go/kubernetes.NewForConfig); Informers.Nodes is required": func() error {
			_, err := kube.NewCacheFromInformers(nil, kube.Informers{}, kube.CacheOptions{})
			return err
		},
		"Informers.Pods is required (an informer of pods for the whole cluster); Informers.Budgets is required": func() error {
			_, err := kube.NewCacheFromInformers(noClient, kube.Informers{Pods: noInformer}, kube.CacheOptions{})
			return err
		},
		"Informers.Attachments is required": func() error {
			_, err := kube.NewCacheFromInformers(noClient, kube.Informers{}, kube.CacheOptions{Volumes: true})
			return err
		},
		"drain/kube.Open: config is required (": func() error {
			_, err := kube.Open(t.Context(), nil, kube.OpenOptions{})
			return err
		},
		"drain/kube.Open: config is required": func() error {
			_, err := kube.DrainNode(t.Context(), nil, "", kube.DrainOptions{})
			return err
		},
		"drain/kube.NewClient: clientset is required (": func() error {
			_, err := kube.NewClient(noClient, kube.ClientOptions{})
			return err
		},
		"drain/kube.NewClient: clientset.CoreV1().RESTClient() is required (a fake clientset has none": func() error {
			_, err := kube.NewClient(fakeClientset(), kube.ClientOptions{})
			return err
		},
		"ClientOptions.QPS and Burst are those of the clientset": func() error {
			_, err := kube.NewClient(fakeClientset(), kube.ClientOptions{QPS: 1})
			return err
		},
		"drain/kube.NewClientForConfig: config is required (": func() error {
			_, err := kube.NewClientForConfig((*rest.Config)(nil), nil, kube.ClientOptions{})
			return err
		},
		"drain/kube.NewAnnotationResponder: client is required (": func() error {
			_, err := kube.NewAnnotationResponder(nil, fake, kube.Options{})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
