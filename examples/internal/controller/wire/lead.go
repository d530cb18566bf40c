// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/identity"
)

// LeasePrefix begins the names of the Leases by which leaders are elected, Component is what they are labelled with.
const (
	LeasePrefix = "belay-"
	Component   = "belay-controller"
)

// standBy shows, of each Lease that this process will ask for, that it does not lead by it. A process that never gets so far as to ask must show that too: what is
// watched for is that nobody leads.
func (p *Plane) standBy() {
	for _, domain := range p.s.Domains {
		p.metrics.Leads("rollout-"+domain, false)
	}
	if p.s.Machines.Provider != "" {
		p.metrics.Leads("machines", false)
	}
	if p.s.NodeMaintenance {
		p.metrics.Leads(maintenanceLease, false)
	}
	if p.s.Agents.Namespace != "" {
		p.metrics.Leads("agents", false)
	}
	if p.s.EvictionRequests {
		p.metrics.Leads(evictionRequests, false)
	}
}

// lead does work whenever this process has the Lease of that name, until ctx ends or the work returns by itself. Another process waits for
// it: the Lease is given back once the work has returned. Work alone is saved by this: the controllers are right with any number of leaders.
func (p *Plane) lead(ctx context.Context, name string, work func(context.Context) error) error {
	logger := klog.FromContext(ctx)
	m, err := identity.NewLeader(p.config, identity.LeadOptions{
		Namespace: p.s.Namespace, Name: LeasePrefix + name, Component: Component, PodUID: p.s.PodUID,
		Liveness: p.s.Lease, Stop: p.s.Stop,
		Options: identity.Options{Metrics: identity.MemberMetrics{Held: func(held bool) {
			p.metrics.Leads(name, held)
			logger.Info("Leadership changed", "lease", LeasePrefix+name, "leads", held)
		}}},
	})
	if err != nil {
		return fmt.Errorf("lease %q: %w", LeasePrefix+name, err)
	}
	return m.Run(ctx, func(ctx context.Context, _ identity.Epoch) error { return work(ctx) })
}
