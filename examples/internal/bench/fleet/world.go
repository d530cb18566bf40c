// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
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

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
)

const (
	namespace = "configs"
	key       = "config"
	// patience bounds each wait for something to happen. It is long: where others use the machine too, all takes longer, and a run that goes on is
	// worth more than one that gave up.
	patience = 20 * time.Minute
	// hands is how many requests whoever measures has under way at a time.
	hands = 16
)

// A world is a control plane, and a directory that agents write to.
type world struct {
	env    *testenv.Env
	admin  kubernetes.Interface
	all    dynamic.Interface
	dir    string
	serial atomic.Int64
}

// newWorld starts one that writes to dir.
func newWorld(ctx context.Context, dir string, o testenv.Options) (*world, error) {
	env, err := testenv.New(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &world{env: env}
	if err := w.open(ctx, dir); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context, dir string) (err error) {
	if w.dir, err = os.MkdirTemp(dir, "bench-fleet"); err != nil {
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

func (w *world) close() error {
	if w.dir == "" {
		return w.env.Close()
	}
	return errors.Join(w.env.Close(), os.RemoveAll(w.dir))
}

// connection is that of one program: a TCP connection that it shares with nobody. Agents and watchers have the same.
func (w *world) connection() *rest.Config {
	c := w.env.Config()
	c.Dial = (&net.Dialer{}).DialContext
	return c
}

// node makes a node with a NodeConfig of its own that asks for nothing.
func (w *world) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := w.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	nc := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind, "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
	nc.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}})
	_, err = w.all.Resource(v1alpha1.NodeConfigsResource).Create(ctx, nc, metav1.CreateOptions{})
	return node, err
}

// config makes an immutable ConfigMap.
func (w *world) config(ctx context.Context) (*corev1.ConfigMap, error) {
	n := w.serial.Add(1)
	return w.admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("config-%d", n)}, Immutable: ptr.To(true),
		Data: map[string]string{key: fmt.Sprintf("word: config-%d\n", n)},
	}, metav1.CreateOptions{})
}

// assign makes a config the wanted one of a node.
func (w *world) assign(ctx context.Context, node string, cm *corev1.ConfigMap) error {
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec/source", "value": map[string]any{
		"configMapRef": map[string]any{"namespace": cm.Namespace, "name": cm.Name, "uid": cm.UID},
	}}})
	if err != nil {
		return err
	}
	_, err = w.all.Resource(v1alpha1.NodeConfigsResource).Patch(ctx, node, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// each calls f for every number below n, a few at a time.
func each(n int, f func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, hands)
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for errs[h] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[h] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// unhurried has connections that are made from now on live however late an answer is, and returns what ends that. By default the client library closes
// one whose ping has no answer for 15 seconds. Two thousand at once on one machine may well be as late, and would then have to shake hands anew, which is
// the more work. Both sides of a comparison and its driver have it.
func unhurried() (end func() error, err error) {
	const name = "HTTP2_READ_IDLE_TIMEOUT_SECONDS" // 0: no pings
	before, found := os.LookupEnv(name)
	end = func() error {
		if found {
			return os.Setenv(name, before)
		}
		return os.Unsetenv(name)
	}
	return end, os.Setenv(name, "0")
}
