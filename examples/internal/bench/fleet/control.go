// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
)

// The bars of F3: MiB, and the share of a processor.
const (
	mostController = 250
	mostIdle       = 0.05
)

// fewPods is how many pods a node has where the bars are.
const fewPods = 4

// control is F3: a rollout to what all nodes run already is over, and nothing happens.
func (b *bench) control(ctx context.Context) (err error) {
	if b.controller == "" {
		return errors.New("the program -controller must be given")
	}
	o := rolloutstage.Options{Nodes: 5000, Cap: 250, Bare: true, Verify: time.Second}
	settle, window := time.Minute, 2*time.Minute
	if b.Quick {
		o.Nodes, settle, window = 500, 10*time.Second, 20*time.Second
	}
	o.Nodes = cmp.Or(b.nodes, o.Nodes)
	from := time.Now()
	f, err := rolloutstage.New(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	names := make([]string, o.Nodes)
	for i := range names {
		names[i] = rolloutstage.NodeName(i)
	}
	if err := podsOn(ctx, f, names, 0, fewPods); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  %d nodes with %d pods each are there after %v\n", o.Nodes, fewPods, time.Since(from).Round(time.Second))
	c, err := b.leading(ctx, f)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  the rollout is over after %v\n", time.Since(from).Round(time.Second))
	if !backoff.Sleep(ctx, settle) {
		return ctx.Err()
	}
	s, err := watched(ctx, window, c.PID())
	if err != nil {
		return err
	}
	b.printControl(s, fmt.Sprintf("in %v after a rollout of %d nodes with %d pods each, of which nobody writes any", window, o.Nodes, fewPods))
	return b.beating(ctx, f, c.PID(), names, settle/2, window)
}

func (b *bench) printControl(s spell, about string) {
	b.Print(runner.Line{
		Name: "F3.resident", Ours: runner.Show(s.most[0].resident) + "MiB", Bar: fmt.Sprintf("%dMiB", mostController), Good: s.most[0].resident <= mostController,
		More: fmt.Sprintf("the most %s; %s MiB of it anonymous", about, runner.Show(s.most[0].anonymous)),
	})
	b.Print(runner.Line{
		Name: "F3.idle", Ours: fmt.Sprintf("%.2f%%", 100*s.used[0]), Bar: fmt.Sprintf("<%.0f%%", 100*mostIdle), Good: s.used[0] < mostIdle, More: "of a processor, " + about,
	})
}

// podsOn gives each node pods that nobody runs, of those numbers.
func podsOn(ctx context.Context, f *rolloutstage.Fleet, names []string, from, to int) error {
	return each(len(names)*(to-from), func(i int) error {
		node, k := names[i/(to-from)], from+i%(to-from)
		_, err := f.Core.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, k), Labels: map[string]string{"app": fmt.Sprint("app-", k)}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "registry.example/image:v1"}}},
		}, metav1.CreateOptions{})
		return err
	})
}

// leading starts a controller, which takes the nodes up, and waits until its rollout is over.
func (b *bench) leading(ctx context.Context, f *rolloutstage.Fleet) (*testenv.Process, error) {
	port, err := f.Env.Port()
	if err != nil {
		return nil, err
	}
	_, err = f.Core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "belay-system"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c := f.Env.Process("controller", []string{b.controller, "--kubeconfig=" + f.Env.Kubeconfig(), "--domains=" + rolloutstage.Domain, "--listen=" + address},
		func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
			return errors.Join(err, resp.Body.Close())
		})
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	if err := f.Begin(ctx, "v1", nil); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; {
		err := f.Completed(ctx, "v1")
		if err == nil {
			return c, nil
		}
		if time.Now().After(deadline) || !backoff.Sleep(ctx, time.Second) {
			text, _ := os.ReadFile(c.Log())
			return nil, fmt.Errorf("%w; the log of the controller: %s", err, text)
		}
	}
}
