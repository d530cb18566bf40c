// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
)

// domain carries out the rollouts of one disruption domain while this process leads it.
func (p *Plane) domain(ctx context.Context, name string) error {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "domain", name))
	ledger := p.ledgers[name]
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ledger.Run(ctx, p.changed.ring) })
	g.Go(func() error {
		return p.lead(ctx, "rollout-"+name, func(ctx context.Context) error { return p.term(ctx, name, ledger) })
	})
	return g.Wait()
}

// term carries out the rollouts of a domain from the time at which this process leads it to that at which it does not any more. Each term has a controller of its own:
// what one remembers is not true any more when another process has led, and what it has shown is the other one's to show.
func (p *Plane) term(ctx context.Context, name string, ledger kube.LedgerStore) error {
	logger := klog.FromContext(ctx)
	counts, forget := p.metrics.Rollouts(name)
	defer forget()
	holder := "rollout/" + name
	defer p.forget(ctx, holder)
	shadows, err1 := kube.NewShadows(p.client)
	fleet, err2 := kube.NewFleet(p.client, p.pods.View().Nodes)
	rollouts, err3 := kube.NewRollouts(p.client, kube.RolloutsOptions{Domain: name, List: p.rollouts.List, Revision: p.revisions.Get})
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("domain %q: %w", name, err)
	}
	records, err := kube.NewRecords(shadows.In(name), p.shadows.List)
	if err != nil {
		return fmt.Errorf("domain %q: %w", name, err)
	}
	c, err := controller.New(controller.Options{
		Ledger: ledger, Fleet: fleet, Health: p.health, Shadows: records, Rollouts: rollouts,
		Drainer: &drain.NodeDrainer{Drainer: p.drainer, Holder: holder, Policy: p.s.Policy, Forced: p.s.Forced},
		Gates:   p.own.Gates, StageGates: p.own.StageGates,
		OwnNode: p.s.OwnNode, Off: p.toggle.off, Caps: p.caps(), Metrics: counts, Recorder: p.events.NewRecorder(p.scheme, "belay-rollout"),
		Notify: func(n controller.Notice) {
			logger.Info("Rollout changed its phase", "rollout", n.Rollout, "from", n.From, "to", n.To, "reason", n.Reason, "message", n.Message)
		},
	})
	if err != nil {
		return fmt.Errorf("domain %q: %w", name, err)
	}
	wake, stop := p.changed.hear()
	defer stop()
	return c.Run(ctx, wake)
}

// conditions are the types of conditions of Nodes by name.
func conditions(names []string) []corev1.NodeConditionType {
	types := make([]corev1.NodeConditionType, len(names))
	for i, n := range names {
		types[i] = corev1.NodeConditionType(n)
	}
	return types
}
