// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv"
)

// measured is the group of the clients that are measured. They are no system:masters, whom the server's fairness lets pass.
const measured = "bench:measured"

// A world is a control plane with clients.
type world struct {
	env    *testenv.Env
	admin  kubernetes.Interface // of everything that is not measured
	serial atomic.Int64         // of namespaces and users
}

// newWorld starts etcd and an API server. The server's own identity Lease is off, so that every request for a Lease is one of ours.
func newWorld(ctx context.Context) (*world, error) {
	env, err := testenv.New(ctx, testenv.Options{Args: map[testenv.Component][]string{
		testenv.APIServer: {"--feature-gates=UnknownVersionInteroperabilityProxy=false,APIServerIdentity=false"},
	}})
	if err != nil {
		return nil, err
	}
	w := &world{env: env}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, env.Close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context) error {
	var err error
	if w.admin, err = kubernetes.NewForConfig(w.env.Config()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-measured"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: measured}},
	}
	if _, err := w.admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding the measured users: %w", err)
	}
	return nil
}

// Close ends the control plane.
func (w *world) Close() error { return w.env.Close() }

// namespace makes one.
func (w *world) namespace(ctx context.Context) (string, error) {
	name := fmt.Sprintf("bench-%d", w.serial.Add(1))
	_, err := w.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return name, nil
}

// user returns the configuration of a new measured user, who has no limit and speaks protobuf.
func (w *world) user() (*rest.Config, error) {
	config, err := w.env.NewUser(fmt.Sprintf("member-%d", w.serial.Add(1)), measured)
	if err != nil {
		return nil, err
	}
	return fast(config), nil
}

func fast(config *rest.Config) *rest.Config {
	config.QPS, config.ContentType, config.AcceptContentTypes = -1, runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	return config
}

// kubeconfig writes the configuration of a new measured user for another process.
func (w *world) kubeconfig() (string, error) {
	config, err := w.user()
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.env.Dir(), fmt.Sprintf("member-%d.kubeconfig", w.serial.Add(1)))
	return path, testenv.WriteKubeconfig(path, config)
}

// served returns how many requests for Leases the API server has answered, by verb, as it counts them itself.
func (w *world) served(ctx context.Context) (map[string]int, error) {
	raw, err := w.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	served := map[string]int{}
	for scanner := bufio.NewScanner(bytes.NewReader(raw)); scanner.Scan(); {
		labels, found := strings.CutPrefix(scanner.Text(), "apiserver_request_total{")
		if !found || !strings.Contains(labels, `resource="leases"`) {
			continue
		}
		_, verb, _ := strings.Cut(labels, `verb="`)
		verb, _, _ = strings.Cut(verb, `"`)
		_, number, _ := strings.Cut(labels, "} ")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the API server's metrics: %q: %w", scanner.Text(), err)
		}
		served[verb] += int(n)
	}
	return served, nil
}

// An account of processor time, in seconds.
type processor struct {
	apiserver, etcd, self float64
	idle, all             float64 // of the machine
}

// spent says how much processor time was used so far.
func (w *world) spent() (processor, error) {
	var p processor
	var errs [4]error
	p.apiserver, errs[0] = runner.ProcessTime(strconv.Itoa(w.env.APIServer().PID()))
	p.etcd, errs[1] = runner.ProcessTime(strconv.Itoa(w.env.Server(testenv.Etcd).PID()))
	p.self, errs[2] = runner.ProcessTime("self")
	p.idle, p.all, errs[3] = runner.MachineTime()
	return p, errors.Join(errs[:]...)
}

// since is the mean number of cores in use since an earlier account, and the share of the machine that was idle.
func (p processor) since(then processor, took time.Duration) processor {
	s := took.Seconds()
	return processor{
		apiserver: (p.apiserver - then.apiserver) / s, etcd: (p.etcd - then.etcd) / s, self: (p.self - then.self) / s,
		idle: (p.idle - then.idle) / max(p.all-then.all, 1e-9),
	}
}

// await waits until done is true.
func await(ctx context.Context, what string, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("waiting %v for %s: %w", limit, what, ctx.Err())
		}
	}
	return nil
}
