// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// deployment brings one deployment forward.
func (p *groupPass) deployment(key machine.Key) error {
	d, ok := p.findDeployment(key)
	if !ok {
		return nil
	}
	decision := machine.DecideDeployment(p.deploymentView(d))
	if len(decision.Plan) > 0 && p.g.can.Planner != nil {
		p.plan(d, decision.Plan)
		decision = machine.DecideDeployment(p.deploymentView(d))
	}
	if decision.NeedLive && !p.live {
		if err := p.read(true); err != nil {
			return err
		}
		if d, ok = p.findDeployment(key); !ok {
			return nil
		}
		decision = machine.DecideDeployment(p.deploymentView(d))
	}
	p.again(decision.After)
	if decision.Store {
		d.Status = decision.Status
		err := p.call(func(ctx context.Context) (err error) { d, err = p.g.o.Groups.PutDeploymentStatus(ctx, d); return err })
		if err != nil {
			return err
		}
	}
	return p.carryDeployment(d, decision)
}

func (p *groupPass) findDeployment(key machine.Key) (machine.Deployment, bool) {
	i := slices.IndexFunc(p.group.Deployments, func(d machine.Deployment) bool { return d.Key == key })
	if i < 0 {
		return machine.Deployment{}, false
	}
	return p.group.Deployments[i], true
}

func (p *groupPass) deploymentView(d machine.Deployment) machine.DeploymentView {
	v := machine.DeploymentView{
		Deployment: d, Now: p.g.o.Now(), Sets: p.group.Sets, Machines: p.group.Machines, Live: p.live,
		Nodes: p.health, Cost: p.cost, Plans: map[machine.Key]provider.Plan{},
	}
	v.Restored = slices.ContainsFunc(p.group.Sets, func(s machine.Set) bool { return s.Owner.Name == d.Name && s.Owner.UID != d.UID && s.Owner.UID != "" })
	if cp := p.g.o.ControlPlane; cp != nil && d.Spec.Template.Spec.Versions.Kubelet != "" {
		v.Skew = cp.Skew(p.ctx, d.Spec.Template.Spec.Versions.Kubelet)
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	for _, m := range p.group.Machines {
		key := planOf(m, d)
		p.plans[key] = true
		if plan, ok := p.g.plans[key]; ok {
			v.Plans[m.Key] = plan
		}
	}
	return v
}

func planOf(m machine.Machine, d machine.Deployment) planKey {
	return planKey{m.Namespace, m.UID, m.Digest, d.Spec.Template.Spec.Digest()}
}

// plan asks the provider what bringing machines to the template would do. One that it can't say is asked again in the next pass.
func (p *groupPass) plan(d machine.Deployment, keys []machine.Key) {
	for _, m := range p.group.Machines {
		if !slices.Contains(keys, m.Key) || m.Instance == nil {
			continue
		}
		want := d.Spec.Template.Spec
		var plan provider.Plan
		err := p.call(func(ctx context.Context) (err error) {
			plan, err = p.g.can.Planner.Plan(ctx, provider.UpdateRequest{
				Ref: m.Instance.Ref(), Cluster: p.g.o.Cluster, Digest: want.Digest(), Desired: want.Desired, Observed: m.Versions,
			})
			return err
		})
		if err != nil {
			p.note("plan for machine", m.Key, err)
			continue
		}
		p.g.mu.Lock()
		p.g.plans[planOf(m, d)] = plan
		p.g.mu.Unlock()
	}
}

func (p *groupPass) carryDeployment(d machine.Deployment, do machine.DeploymentDecision) error {
	groups := p.g.o.Groups
	var errs []error
	try := func(f func(ctx context.Context) error) { errs = append(errs, p.call(f)) }
	for _, c := range do.Adopt {
		try(func(ctx context.Context) error { return groups.OwnSet(ctx, c, machine.Owner{UID: d.UID, Name: d.Name}) })
	}
	if do.Create != nil {
		try(func(ctx context.Context) error { return groups.CreateSet(ctx, *do.Create) })
	}
	for _, u := range do.Update {
		try(func(ctx context.Context) error { return groups.PutSet(ctx, u.Set) })
	}
	for _, m := range do.Moves {
		try(func(ctx context.Context) error { return groups.PutMachine(ctx, m.Machine) })
	}
	for _, c := range do.Delete {
		try(func(ctx context.Context) error { return groups.DeleteSet(ctx, c) })
	}
	if len(errs) > 0 {
		p.stale()
		p.again(soonAgain)
	}
	return errors.Join(errs...)
}
