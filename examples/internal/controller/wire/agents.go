// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/identity"
)

// AgentComponent is what the Leases of agents are labelled with: examples/agent.
const AgentComponent = "belay-agent"

// canary is the component of the Lease by which a view of agents knows that it is up to date.
const canary = "belay-controller-canary"

// agents counts who is alive, and deletes what is left of those who are gone for long, while this process leads.
func (p *Plane) agents(ctx context.Context) error {
	var current atomic.Pointer[identity.View]
	collected := p.metrics.Agents(func() *metrics.Census { return census(current.Load()) })
	return p.lead(ctx, "agents", func(ctx context.Context) error {
		defer current.Store(nil)
		return p.watchAgents(ctx, collected, &current)
	})
}

// byComponent is an index of a view.
const byComponent = "component"

// census counts the agents that a view sees by their states; nobody is counted where this process has no view.
func census(v *identity.View) *metrics.Census {
	if v == nil {
		return nil
	}
	f := v.Freshness()
	c := &metrics.Census{States: map[string]int{}, Fresh: f.Fresh, MassLoss: f.Held > 0}
	for _, state := range []identity.State{identity.Unconfirmed, identity.Alive, identity.Suspect, identity.Lost} {
		c.States[string(state)] = len(v.Indexed(byComponent, AgentComponent, state))
	}
	return c
}

// watchAgents is one term of it. A view begins anew with each: what it has known may be old.
func (p *Plane) watchAgents(ctx context.Context, collected identity.CollectorMetrics, current *atomic.Pointer[identity.View]) error {
	of := p.s.Agents
	leases := p.core.CoordinationV1().Leases(of.Namespace)
	me, err := p.canary()
	if err != nil {
		return err
	}
	informer, err := identity.NewInformer(leases, AgentComponent, canary)
	if err != nil {
		return err
	}
	view, err := identity.NewView(identity.ViewConfig{
		Source: informer, Canary: me, Liveness: of.Lease,
		IndexBy: map[string]func(*coordinationv1.Lease) []string{byComponent: func(l *coordinationv1.Lease) []string { return []string{l.Labels[identity.ComponentLabel]} }},
	})
	if err != nil {
		return fmt.Errorf("watching the agents in %q: %w", of.Namespace, err)
	}
	collector, err := identity.NewCollector(leases, view, identity.CollectorConfig{GCAfter: of.GCAfter, Metrics: collected})
	if err != nil {
		return fmt.Errorf("collecting Leases in %q: %w", of.Namespace, err)
	}
	current.Store(view)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { informer.RunWithContext(ctx); return nil })
	g.Go(func() error { return ended(ctx, view.Run(ctx)) })
	g.Go(func() error { return ended(ctx, collector.Run(ctx)) })
	g.Go(func() error {
		return ended(ctx, me.Run(ctx, func(ctx context.Context, _ identity.Epoch) error { <-ctx.Done(); return nil }))
	})
	return g.Wait()
}

// canary is a member among the agents' Leases whose writes the view has to see.
func (p *Plane) canary() (*identity.Member, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	of := p.s.Agents
	fingerprint := identity.LocalFingerprint("/")
	fingerprint.PodUID = cmp.Or(p.s.PodUID, fingerprint.PodUID)
	m, err := identity.New(p.core.CoordinationV1().Leases(of.Namespace), identity.Spec{
		Namespace: of.Namespace, Name: identity.Name(canary, canary, host+"/"+p.s.PodUID), Component: canary, Host: host,
		Fingerprint: fingerprint, OmitManagedFields: true, Timing: identity.Timing{
			Renew: max(time.Second, of.Lease/8), Jitter: 0.04, Hold: of.Lease * 2 / 3, Liveness: of.Lease,
			Duration: max(of.Lease, 10*time.Second).Truncate(time.Second), Stop: p.s.Stop,
		},
	}, identity.Options{})
	if err != nil {
		return nil, fmt.Errorf("the canary in %q: %w", of.Namespace, err)
	}
	return m, nil
}
