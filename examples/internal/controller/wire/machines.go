// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// askAgain is how often a provider is asked for its abilities that does not answer.
const askAgain = 10 * time.Second

// machineHolder is who drains the nodes of machines.
const machineHolder = "machine"

// machines looks after machines, sets, deployments and health checks, while this process leads.
func (p *Plane) machines(ctx context.Context) error {
	counts, forget := p.metrics.Machines()
	return p.lead(ctx, "machines", func(ctx context.Context) error {
		defer forget()
		defer p.forget(ctx, machineHolder)
		cloud, err := p.provider(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		return p.tend(ctx, cloud, counts)
	})
}

// provider returns the program's own one of that name, or waits until the program of that name answers: rollouts go on without it.
func (p *Plane) provider(ctx context.Context) (cloud provider.Provider, err error) {
	of := p.s.Machines
	if own := p.own.Providers[of.Provider]; own != nil {
		return own, nil
	}
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range of.Env {
		if value, there := os.LookupEnv(name); there {
			env = append(env, name+"="+value)
		}
	}
	err = wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
		var err error
		cloud, err = exec.New(ctx, exec.Options{Path: of.Provider, Args: of.Args, Env: env})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Asking the provider what it can do: no machine is looked after until it says so", "provider", of.Provider)
		}
		return err == nil, nil
	})
	return cloud, err
}

// tend is one term: what controllers and caches remember is not true any more when another process has led.
func (p *Plane) tend(ctx context.Context, cloud provider.Provider, counts controller.Metrics) error {
	of := p.s.Machines
	machines, err := kube.NewMachines(p.client, of.Namespace)
	if err != nil {
		return err
	}
	groups, err := kube.NewGroups(p.client, of.Namespace, machines)
	if err != nil {
		return err
	}
	doctor, err := kube.NewDoctor(p.nodes)
	if err != nil {
		return err
	}
	budget := &rollout.Slots{Ledger: p.ledgers[of.Domain], Caps: p.caps(), Holders: machines}
	fleet := controller.Fleet{Machines: machines, Nodes: p.nodes, Cargo: kube.Cargo{Client: p.core}}
	one, err := controller.New(controller.Options{
		Cluster: of.Cluster, Machines: machines, Nodes: p.nodes, Provider: cloud, Secrets: kube.Secrets{Client: p.core}, Budget: budget,
		Drainer: &drain.NodeDrainer{Drainer: p.drainer, Holder: machineHolder, Policy: p.s.Policy, Forced: p.s.Forced},
		Gates:   []controller.Gate{controller.EndGate{Fleet: fleet}}, Endpoint: of.Endpoint, Metrics: counts,
	})
	if err != nil {
		return fmt.Errorf("machines: %w", err)
	}
	all, err := controller.NewGroups(controller.GroupOptions{
		Cluster: of.Cluster, Groups: groups, Doctor: doctor, Provider: cloud, Budget: budget,
	})
	if err != nil {
		return fmt.Errorf("sets of machines: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return kube.Run(ctx, kube.Loop{Controller: one, Machines: machines, Nodes: p.nodes, Drains: p.drainer})
	})
	g.Go(func() error {
		return kube.RunGroups(ctx, kube.GroupLoop{Controller: all, Groups: groups, Machines: machines, Nodes: p.nodes})
	})
	return g.Wait()
}

// caps bind rollouts and machines together; none leaves rollouts to their own, and machines go one at a time then.
func (p *Plane) caps() []protocol.Cap {
	if p.s.MaxUnavailable == 0 {
		return nil
	}
	return []protocol.Cap{{Max: p.s.MaxUnavailable}}
}
