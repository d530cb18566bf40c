// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
)

// childEnv names the file that makes this test binary a controller, and nothing else.
const childEnv = "BELAY_ROLLOUT_CHILD"

// childTime ends a child that its parent has lost.
const childTime = 15 * time.Minute

// A childTask says what a child does: it is the controller of the domain, if it has a Lease as long as it leads.
type childTask struct {
	Kubeconfig, Domain, Holder string
	Lease                      string
	LeaseFor                   time.Duration
	// At is a part of the path of the writes that count for Stop and Freeze; empty counts all but those of Leases and events.
	At string
	// Stop is the write, counted from 1, at which the child stops for ever; 0 for never. It has been carried out by the server if Sent.
	Stop int
	Sent bool
	// Freeze is the write before which the child freezes itself. When it is thawed, the write goes out.
	Freeze int
}

// A childEvent is a line that a child tells its parent.
type childEvent struct {
	Kind, What string
}

// The kinds of events.
const (
	childReady   = "ready"   // its caches have synced
	childLeads   = "leads"   // it has the Lease
	childStopped = "stopped" // at the write What
	childFreezes = "freezes" // before the write What
	childFailed  = "failed"
)

// childMain is the child's main function. It talks through file descriptor 3.
func childMain(file string) int {
	c := &child{out: json.NewEncoder(os.NewFile(3, "events"))}
	ctx, cancel := context.WithTimeout(context.Background(), childTime)
	defer cancel()
	if err := c.run(ctx, file); err != nil {
		c.tell(childFailed, err.Error())
		return 1
	}
	return 0
}

type child struct {
	childTask
	mu     sync.Mutex
	writes int
	out    *json.Encoder
	wake   chan struct{}
}

func (c *child) tell(kind, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(childEvent{kind, what})
}

func (c *child) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *child) run(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &c.childTask); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	ctx = klog.NewContext(ctx, klog.Logger{})
	config.QPS, c.wake = -1, make(chan struct{}, 1)
	ctl, err := c.controller(ctx, config)
	if err != nil {
		return err
	}
	c.tell(childReady, "")
	if c.Lease == "" {
		return ctl.Run(ctx, c.wake)
	}
	return c.lead(ctx, config, ctl)
}

// controller wires one, with caches that live as long as ctx.
func (c *child) controller(ctx context.Context, config *rest.Config) (*controller.Controller, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stopper{c, next} })
	core, err1 := kubernetes.NewForConfig(config)
	client, err2 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	d, nodes, err := c.drainer(ctx, config, core)
	if err != nil {
		return nil, err
	}
	shadows, rollouts, revisions := kube.NewShadowCache(client), kube.NewRolloutCache(client), kube.NewRevisionCache(client)
	for _, run := range []func(context.Context, func()) error{shadows.Run, rollouts.Run, revisions.Run} {
		go func() {
			if err := run(ctx, c.poke); err != nil {
				c.tell(childFailed, err.Error())
			}
		}()
	}
	for !shadows.Synced() || !rollouts.Synced() || !revisions.Synced() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return controller.New(controller.Options{
		Ledger: kube.NewLedgerStore(client, c.Domain), Fleet: kube.NewFleet(client, nodes),
		Shadows:  kube.NewRecords(kube.NewShadows(client), shadows.List),
		Rollouts: kube.NewRollouts(client, kube.RolloutsOptions{Domain: c.Domain, List: rollouts.List, Revision: revisions.Get}),
		Drainer:  &drain.NodeDrainer{Drainer: d, Holder: "rollout/" + c.Domain, Policy: drain.Policy{Settle: new(100 * time.Millisecond)}},
	})
}

// lead is a controller while it has the Lease.
func (c *child) lead(ctx context.Context, config *rest.Config, ctl *controller.Controller) error {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: c.Lease}, Client: core.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Holder},
		},
		LeaseDuration: c.LeaseFor, RenewDeadline: c.LeaseFor * 3 / 4, RetryPeriod: c.LeaseFor / 8,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.tell(childLeads, "")
				failed <- ctl.Run(ctx, c.wake)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return errors.Join(fmt.Errorf("%s leads no more", c.Holder), <-failed)
}

// A stopper counts writes, and stops or freezes the child at one of them.
type stopper struct {
	c    *child
	next http.RoundTripper
}

// RoundTrip never returns from the write at which the child stops.
func (s stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.counts(r) {
		return s.next.RoundTrip(r)
	}
	s.c.mu.Lock()
	s.c.writes++
	n := s.c.writes
	s.c.mu.Unlock()
	switch what := r.Method + " " + r.URL.Path; n {
	case s.c.Stop:
		if s.c.Sent {
			if response, err := s.next.RoundTrip(r); err == nil {
				defer response.Body.Close()
			}
		}
		s.c.tell(childStopped, what)
		select {}
	case s.c.Freeze:
		s.c.tell(childFreezes, what)
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return nil, err
		}
	}
	return s.next.RoundTrip(r)
}

func (s stopper) counts(r *http.Request) bool {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") {
		return false
	}
	return strings.Contains(r.URL.Path, s.c.At)
}
