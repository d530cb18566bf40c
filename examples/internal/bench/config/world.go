// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
)

const (
	namespace = "configs"
	key       = "config"
	// patience is how long anything may take that is waited for.
	patience = time.Minute
)

// A world is a control plane, and a directory on the disk that is measured.
type world struct {
	env    *testenv.Env
	admin  kubernetes.Interface
	all    dynamic.Interface
	dir    string
	serial atomic.Int64
}

func newWorld(ctx context.Context) (*world, error) {
	env, err := testenv.New(ctx, testenv.Options{})
	if err != nil {
		return nil, err
	}
	w := &world{env: env}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "bench-config"); err != nil {
		return err
	}
	if w.admin, err = kubernetes.NewForConfig(w.env.Config()); err != nil {
		return err
	}
	if w.all, err = dynamic.NewForConfig(w.env.Config()); err != nil {
		return err
	}
	if err := kube.Install(ctx, w.env.Config()); err != nil {
		return err
	}
	_, err = w.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	return err
}

// Close ends the control plane and removes the directory.
func (w *world) Close() error { return errors.Join(w.env.Close(), os.RemoveAll(w.dir)) }

// node makes a node with a NodeConfig that asks for nothing.
func (w *world) node(ctx context.Context, name string) error {
	if _, err := w.env.CreateNode(ctx, name); err != nil {
		return err
	}
	nc := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind, "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
	_, err := w.all.Resource(v1alpha1.NodeConfigsResource).Create(ctx, nc, metav1.CreateOptions{})
	return err
}

// config makes an immutable ConfigMap whose text is the word that the child is told, with limits that have it promoted soon.
func (w *world) config(ctx context.Context, word string) (*corev1.ConfigMap, error) {
	return w.admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", word, w.serial.Add(1))}, Immutable: ptr.To(true),
		Data: map[string]string{
			key: "word: " + word + "\n", configsync.KeyTrialDuration: "200ms", configsync.KeyMinHealthyRun: "100ms", configsync.KeyCrashLoopThreshold: "0",
		},
	}, metav1.CreateOptions{})
}

// assign makes a config the wanted one, and says when that was on record.
func (w *world) assign(ctx context.Context, node string, cm *corev1.ConfigMap) (time.Time, error) {
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec/source", "value": map[string]any{
		"configMapRef": map[string]any{"namespace": cm.Namespace, "name": cm.Name, "uid": cm.UID},
	}}})
	if err != nil {
		return time.Time{}, err
	}
	_, err = w.all.Resource(v1alpha1.NodeConfigsResource).Patch(ctx, node, types.JSONPatchType, patch, metav1.PatchOptions{})
	return time.Now(), err
}

// served is how many requests for NodeConfigs the API server says that it has answered, watches that it ended among them.
func (w *world) served(ctx context.Context) (n int, err error) {
	raw, err := w.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	for scanner := bufio.NewScanner(bytes.NewReader(raw)); scanner.Scan(); {
		labels, found := strings.CutPrefix(scanner.Text(), "apiserver_request_total{")
		if !found || !strings.Contains(labels, `resource="nodeconfigs"`) {
			continue
		}
		_, number, _ := strings.Cut(labels, "} ")
		count, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the API server's metrics: %q: %w", scanner.Text(), err)
		}
		n += int(count)
	}
	return n, nil
}

// counted is a client whose requests are counted.
func (w *world) counted() (*rest.Config, *atomic.Int64) {
	config, n := w.env.Config(), &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) { n.Add(1); return next.RoundTrip(req) })
	})
	return config, n
}

type tripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t tripper) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }
