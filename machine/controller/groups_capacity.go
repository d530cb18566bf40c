// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// known is what the provider has said of something that is desired; until is when it is asked again, zero is never.
type known[T any] struct {
	value T
	until time.Time
}

// maxKnown bounds how much is remembered. What is forgotten is asked for again.
const maxKnown = 1024

// capacities write on each deployment, and on each set without one, that the cluster-autoscaler scales what a Node of it would have.
func (p *groupPass) capacities() {
	if p.g.can.Capacity == nil {
		return
	}
	for _, d := range p.group.Deployments {
		if d.Deleted.IsZero() {
			p.capacity("deployment", machine.Choice{Key: d.Key, UID: d.UID, Version: d.Version}, d.Annotations, d.Spec.Template, p.g.o.Groups.AnnotateDeployment)
		}
	}
	for _, s := range p.group.Sets {
		if s.Deleted.IsZero() && s.Owner == (machine.Owner{}) {
			p.capacity("set", machine.Choice{Key: s.Key, UID: s.UID, Version: s.Version}, s.Annotations, s.Spec.Template, p.g.o.Groups.AnnotateSet)
		}
	}
}

func (p *groupPass) capacity(kind string, c machine.Choice, is map[string]string, t machine.Template, write func(context.Context, machine.Choice, map[string]*string) error) {
	if _, scaled := is[machine.MaxSizeAnnotation]; !scaled {
		return
	}
	quantities, ok := p.quantities(t.Spec.Desired)
	if !ok {
		return
	}
	if change := machine.CapacityChange(is, machine.CapacityAnnotations(quantities, t.Spec.Node)); len(change) > 0 {
		p.note(kind, c.Key, p.call(func(ctx context.Context) error { return write(ctx, c, change) }))
	}
}

// quantities asks the provider once for each desire. After an error it waits as for any other call, and what stands there stays.
func (p *groupPass) quantities(d provider.Desired) (map[string]string, bool) {
	digest, now := d.Digest(), p.g.o.Now()
	p.g.mu.Lock()
	k, there := p.g.capacity[digest]
	p.g.mu.Unlock()
	if there && (k.until.IsZero() || now.Before(k.until)) {
		return k.value, k.until.IsZero()
	}
	err := p.call(func(ctx context.Context) (err error) { k.value, err = p.g.can.Capacity.Capacity(ctx, d); return err })
	k.until = time.Time{}
	if err != nil {
		wait := max(provider.ClassOf(err).Backoff(1), provider.AfterOf(err))
		k.until = now.Add(wait)
		p.again(wait)
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if len(p.g.capacity) >= maxKnown {
		clear(p.g.capacity)
	}
	p.g.capacity[digest] = k
	return k.value, err == nil
}
