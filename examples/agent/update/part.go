// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/rollout/nodeagent"
)

const (
	// Component is what the Leases of agents are labelled with.
	Component = "belay-agent"
	// ProbedLease is the Lease that a guarded agent must not be able to create. No node has that name.
	ProbedLease = "belay-guard-probe"
	// callTimeout bounds each call of the API server.
	callTimeout = 10 * time.Second
)

// errTaken is the end of a hold by another process. The next Run finds out who it is.
var errTaken = errors.New("another process has taken the Lease of this node")

// Options are what a Part is made of.
type Options struct {
	// Node is the name of the node.
	Node string
	// Config is the connection. It is not changed.
	Config *rest.Config
	// Disk keeps the record of each attempt, Updater changes the node.
	Disk    nodeagent.Disk
	Updater nodeagent.Updater
	// VerifyFor, VerifyEvery, VerifyWithin, ApplyTimeout and RevertBroken are those of nodeagent.Options.
	VerifyFor, VerifyEvery, VerifyWithin, ApplyTimeout time.Duration
	RevertBroken                                       bool
	// LeaseNamespace is that of the Lease; empty: none is kept. Lease is how long a silent agent counts as alive. LockFile shows that the
	// process before this one is gone; see identity.Spec.
	LeaseNamespace string
	Lease          time.Duration
	LockFile       string
	// Guard is the name of the admission policy; empty: it is not asked for. It needs a LeaseNamespace.
	Guard string
	// RetryMin and RetryMax bound the pause after trouble with the API server.
	RetryMin, RetryMax time.Duration
}

// A Part is a node's part in rollouts.
type Part struct {
	o      Options
	core   kubernetes.Interface
	client dynamic.Interface
}

// New makes a Part. Nothing is asked of the API server yet.
func New(o Options) (*Part, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // a heartbeat never waits for other requests, of which there are few
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &Part{o, core, client}, nil
}

// Run takes part until ctx ends; then it returns nil. An error that has nodeauth.ErrUnguarded says that agents are not held to
// their own nodes, an *identity.DuplicateError that another process is the agent of this node. Run may be called again then, to look again.
func (p *Part) Run(ctx context.Context) error {
	if p.o.Guard == "" {
		return p.live(ctx)
	}
	leases := p.core.CoordinationV1().Leases(p.o.LeaseNamespace)
	return nodeauth.Probe{Policy: p.o.Guard, Try: nodeauth.TryLease(leases, ProbedLease)}.Run(ctx, p.live)
}

// live takes part under one registration of the Node after another. A Node that can't be read, or is not there yet, is waited for: the
// kubelet may be about to register it.
func (p *Part) live(ctx context.Context) error {
	for pause := p.o.RetryMin; ctx.Err() == nil; pause = min(2*pause, p.o.RetryMax) {
		node, err := p.node(ctx)
		if err == nil {
			pause = p.o.RetryMin
			if err = p.be(ctx, node); !errors.Is(err, identity.ErrNodeGone) {
				return err
			}
		}
		if ctx.Err() != nil {
			break
		}
		klog.FromContext(ctx).Info("Takes no part in rollouts yet", "node", p.o.Node, "why", err, "again", pause)
		wait(ctx, pause)
	}
	return nil
}

// wait ends after d, or with ctx.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// node reads the Node.
func (p *Part) node(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := p.core.CoreV1().Nodes().Get(ctx, p.o.Node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Node %q: %w", p.o.Node, err)
	}
	return n, nil
}
