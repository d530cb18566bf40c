// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/backoff"
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

// errTaken is the end of a hold by another process. Who that is turns out at the next look.
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
	// Told, if not nil, is told why this process is not the agent of its node; then that is looked at again after a pause, and what has begun
	// goes on. Otherwise Run returns it.
	Told func(err error)
}

// A Part is a node's part in rollouts.
type Part struct {
	o      Options
	config *rest.Config
	core   kubernetes.Interface
}

// New makes a Part. Nothing is asked of the API server yet.
func New(o Options) (*Part, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // a heartbeat never waits for other requests, of which there are few
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &Part{o, config, core}, nil
}

// Run takes part until ctx ends; then it returns nil. Without Options.Told it returns an error where this process is not the agent of the node: one that
// has nodeauth.ErrUnguarded if agents are not held to their own nodes, an *identity.DuplicateError if another process is. It may be called again then.
func (p *Part) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ended := make(chan struct{})
	r := &round{p, newDoor(), ctx.Done(), ended}
	g.Go(func() error {
		defer close(ended)
		return r.follow(ctx)
	})
	g.Go(func() error { return r.qualify(ctx) })
	return g.Wait()
}

// A round is one Run.
type round struct {
	*Part
	door *door
	// stopping is closed when the Run is to end, ended when the agent that follows orders has.
	stopping, ended <-chan struct{}
}

func (r *round) retry() *backoff.Backoff {
	return &backoff.Backoff{First: r.o.RetryMin, Most: r.o.RetryMax}
}

// qualify opens the door while this process may go through it.
func (r *round) qualify(ctx context.Context) error {
	for retry := r.retry(); ; {
		err := r.guarded(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case r.o.Told == nil:
			return err
		}
		r.o.Told(err)
		retry.Wait(ctx)
	}
}

// guarded goes on as long as agents are held to their own nodes, where that is asked for.
func (r *round) guarded(ctx context.Context) error {
	if r.o.Guard == "" {
		return r.live(ctx)
	}
	leases := r.core.CoordinationV1().Leases(r.o.LeaseNamespace)
	return nodeauth.Probe{Policy: r.o.Guard, Try: nodeauth.TryLease(leases, ProbedLease)}.Run(ctx, r.live)
}

// live is the agent of one registration of the Node after another. A Node that can't be read, or is not there yet, is waited for: the
// kubelet may be about to register it.
func (r *round) live(ctx context.Context) error {
	for retry := r.retry(); ctx.Err() == nil; {
		node, err := r.node(ctx)
		if err == nil {
			retry.Reset()
			if err = r.be(ctx, node); !errors.Is(err, identity.ErrNodeGone) {
				return err
			}
		}
		if ctx.Err() != nil {
			break
		}
		pause := retry.Next()
		klog.FromContext(ctx).Info("Takes no part in rollouts yet", "node", r.o.Node, "why", err, "again", pause)
		backoff.Sleep(ctx, pause)
	}
	return nil
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
