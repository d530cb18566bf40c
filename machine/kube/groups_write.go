// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// PutDeploymentStatus implements [controller.Groups].
func (g *Groups) PutDeploymentStatus(ctx context.Context, d machine.Deployment) (machine.Deployment, error) {
	if g.client == nil {
		return machine.Deployment{}, option.NotMade("machine/kube.Groups.PutDeploymentStatus", "machine/kube.NewGroups")
	}
	return g.deployments.putStatus(ctx, g.client, d.Key, d.Version, func(o *v1alpha1.MachineDeployment) { o.SetStatus(d, time.Now()) })
}

// PutSetStatus implements [controller.Groups].
func (g *Groups) PutSetStatus(ctx context.Context, s machine.Set) (machine.Set, error) {
	if g.client == nil {
		return machine.Set{}, option.NotMade("machine/kube.Groups.PutSetStatus", "machine/kube.NewGroups")
	}
	return g.sets.putStatus(ctx, g.client, s.Key, s.Version, func(o *v1alpha1.MachineSet) { o.SetStatus(s, time.Now()) })
}

// PutCheckStatus implements [controller.Groups].
func (g *Groups) PutCheckStatus(ctx context.Context, h machine.HealthCheck) (machine.HealthCheck, error) {
	if g.client == nil {
		return machine.HealthCheck{}, option.NotMade("machine/kube.Groups.PutCheckStatus", "machine/kube.NewGroups")
	}
	return g.checks.putStatus(ctx, g.client, h.Key, h.Version, func(o *v1alpha1.MachineHealthCheck) { o.SetStatus(h, time.Now()) })
}

// CreateSet implements [controller.Groups].
func (g *Groups) CreateSet(ctx context.Context, s machine.Set) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.CreateSet", "machine/kube.NewGroups")
	}
	o := &v1alpha1.MachineSet{}
	if err := o.SetCore(s); err != nil {
		return err
	}
	return g.sets.create(ctx, g.client, s.Key, o)
}

// PutSet implements [controller.Groups].
func (g *Groups) PutSet(ctx context.Context, s machine.Set) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.PutSet", "machine/kube.NewGroups")
	}
	return g.sets.put(ctx, g.client, s.Key, s.Version, func(o *v1alpha1.MachineSet) error { return o.SetCore(s) })
}

// DeleteSet implements [controller.Groups].
func (g *Groups) DeleteSet(ctx context.Context, c machine.Choice) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.DeleteSet", "machine/kube.NewGroups")
	}
	return g.sets.delete(ctx, g.client, c)
}

// OwnSet implements [controller.Groups].
func (g *Groups) OwnSet(ctx context.Context, c machine.Choice, owner machine.Owner) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.OwnSet", "machine/kube.NewGroups")
	}
	return g.sets.put(ctx, g.client, c.Key, c.Version, func(o *v1alpha1.MachineSet) error {
		s, err := o.Core()
		if err != nil {
			return err
		}
		s.Owner = owner
		return o.SetCore(s)
	})
}

func (g *Groups) ofMachines() kindOf[v1alpha1.Machine, machine.Machine] {
	return kindOf[v1alpha1.Machine, machine.Machine]{v1alpha1.MachineKind, v1alpha1.MachinesResource, g.machines.informer, g.machines.core, nil}
}

// CreateMachines implements [controller.Groups], all at once.
func (g *Groups) CreateMachines(ctx context.Context, machines []machine.Machine) []error {
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() { errs[i] = g.createMachine(ctx, m) })
	}
	wg.Wait()
	return errs
}

func (g *Groups) createMachine(ctx context.Context, m machine.Machine) error {
	o := &v1alpha1.Machine{}
	if err := o.SetCore(m); err != nil {
		return err
	}
	return g.ofMachines().create(ctx, g.client, m.Key, o)
}

// PutMachine implements [controller.Groups].
func (g *Groups) PutMachine(ctx context.Context, m machine.Machine) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.PutMachine", "machine/kube.NewGroups")
	}
	return g.ofMachines().put(ctx, g.client, m.Key, m.Version, func(o *v1alpha1.Machine) error { return o.SetCore(m) })
}

// OwnMachine implements [controller.Groups].
func (g *Groups) OwnMachine(ctx context.Context, c machine.Choice, owner machine.Owner) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.OwnMachine", "machine/kube.NewGroups")
	}
	return g.ofMachines().put(ctx, g.client, c.Key, c.Version, func(o *v1alpha1.Machine) error {
		m, err := o.Core()
		if err != nil {
			return err
		}
		m.Owner = owner
		return o.SetCore(m)
	})
}

// DeleteMachine implements [controller.Groups].
func (g *Groups) DeleteMachine(ctx context.Context, c machine.Choice) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.DeleteMachine", "machine/kube.NewGroups")
	}
	return g.ofMachines().delete(ctx, g.client, c)
}

// Annotate implements [controller.Groups].
func (g *Groups) Annotate(ctx context.Context, c machine.Choice, annotations map[string]string) (machine.Choice, error) {
	if g.client == nil {
		return machine.Choice{}, option.NotMade("machine/kube.Groups.Annotate", "machine/kube.NewGroups")
	}
	return g.ofMachines().patch(ctx, g.client, c, map[string]any{"annotations": annotations})
}

// AnnotateDeployment implements [controller.Groups].
func (g *Groups) AnnotateDeployment(ctx context.Context, c machine.Choice, annotations map[string]*string) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.AnnotateDeployment", "machine/kube.NewGroups")
	}
	_, err := g.deployments.patch(ctx, g.client, c, map[string]any{"annotations": annotations})
	return err
}

// AnnotateSet implements [controller.Groups].
func (g *Groups) AnnotateSet(ctx context.Context, c machine.Choice, annotations map[string]*string) error {
	if g.client == nil {
		return option.NotMade("machine/kube.Groups.AnnotateSet", "machine/kube.NewGroups")
	}
	_, err := g.sets.patch(ctx, g.client, c, map[string]any{"annotations": annotations})
	return err
}
