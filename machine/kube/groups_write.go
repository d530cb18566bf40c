// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// PutDeploymentStatus implements [controller.Groups].
func (g *groupStore) PutDeploymentStatus(ctx context.Context, d machine.Deployment) (machine.Deployment, error) {
	return g.deployments.putStatus(ctx, g.client, d.Key, d.Version, func(o *v1alpha1.MachineDeployment) { o.SetStatus(d, time.Now()) })
}

// PutSetStatus implements [controller.Groups].
func (g *groupStore) PutSetStatus(ctx context.Context, s machine.Set) (machine.Set, error) {
	return g.sets.putStatus(ctx, g.client, s.Key, s.Version, func(o *v1alpha1.MachineSet) { o.SetStatus(s, time.Now()) })
}

// PutCheckStatus implements [controller.Groups].
func (g *groupStore) PutCheckStatus(ctx context.Context, h machine.HealthCheck) (machine.HealthCheck, error) {
	return g.checks.putStatus(ctx, g.client, h.Key, h.Version, func(o *v1alpha1.MachineHealthCheck) { o.SetStatus(h, time.Now()) })
}

// CreateSet implements [controller.Groups].
func (g *groupStore) CreateSet(ctx context.Context, s machine.Set) error {
	o := &v1alpha1.MachineSet{}
	if err := o.SetCore(s); err != nil {
		return err
	}
	return g.sets.create(ctx, g.client, s.Key, o)
}

// PutSet implements [controller.Groups].
func (g *groupStore) PutSet(ctx context.Context, s machine.Set) error {
	return g.sets.put(ctx, g.client, s.Key, s.Version, func(o *v1alpha1.MachineSet) error { return o.SetCore(s) })
}

// DeleteSet implements [controller.Groups].
func (g *groupStore) DeleteSet(ctx context.Context, c machine.Choice) error {
	return g.sets.delete(ctx, g.client, c)
}

// OwnSet implements [controller.Groups].
func (g *groupStore) OwnSet(ctx context.Context, c machine.Choice, owner machine.Owner) error {
	return g.sets.put(ctx, g.client, c.Key, c.Version, func(o *v1alpha1.MachineSet) error {
		s, err := o.Core()
		if err != nil {
			return err
		}
		s.Owner = owner
		return o.SetCore(s)
	})
}

func (g *groupStore) ofMachines() kindOf[v1alpha1.Machine, machine.Machine] {
	return kindOf[v1alpha1.Machine, machine.Machine]{v1alpha1.MachineKind, v1alpha1.MachinesResource, g.machines.informer, (*v1alpha1.Machine).Core, nil}
}

// CreateMachines implements [controller.Groups], all at once.
func (g *groupStore) CreateMachines(ctx context.Context, machines []machine.Machine) []error {
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() { errs[i] = g.createMachine(ctx, m) })
	}
	wg.Wait()
	return errs
}

func (g *groupStore) createMachine(ctx context.Context, m machine.Machine) error {
	o := &v1alpha1.Machine{}
	if err := o.SetCore(m); err != nil {
		return err
	}
	return g.ofMachines().create(ctx, g.client, m.Key, o)
}

// PutMachine implements [controller.Groups].
func (g *groupStore) PutMachine(ctx context.Context, m machine.Machine) error {
	return g.ofMachines().put(ctx, g.client, m.Key, m.Version, func(o *v1alpha1.Machine) error { return o.SetCore(m) })
}

// OwnMachine implements [controller.Groups].
func (g *groupStore) OwnMachine(ctx context.Context, c machine.Choice, owner machine.Owner) error {
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
func (g *groupStore) DeleteMachine(ctx context.Context, c machine.Choice) error {
	return g.ofMachines().delete(ctx, g.client, c)
}

// Annotate implements [controller.Groups].
func (g *groupStore) Annotate(ctx context.Context, c machine.Choice, annotations map[string]string) (machine.Choice, error) {
	return g.ofMachines().patch(ctx, g.client, c, map[string]any{"annotations": annotations})
}

// AnnotateDeployment implements [controller.Groups].
func (g *groupStore) AnnotateDeployment(ctx context.Context, c machine.Choice, annotations map[string]*string) error {
	_, err := g.deployments.patch(ctx, g.client, c, map[string]any{"annotations": annotations})
	return err
}

// AnnotateSet implements [controller.Groups].
func (g *groupStore) AnnotateSet(ctx context.Context, c machine.Choice, annotations map[string]*string) error {
	_, err := g.sets.patch(ctx, g.client, c, map[string]any{"annotations": annotations})
	return err
}
