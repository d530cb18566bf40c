// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/machine"
)

// check carries out a health check.
func (p *groupPass) check(h machine.HealthCheck) error {
	left := 1
	if b, ok := p.g.o.Budget.(Left); ok {
		left = b.Left(p.ctx)
	}
	d := machine.DecideHealth(machine.HealthView{
		Check: h, Now: p.g.o.Now(), Matches: p.group.Matches[h.UID], Machines: p.group.Machines, Nodes: p.health, NodesKnown: p.known && p.g.o.Doctor != nil, Budget: left,
		CanRestartAgent: p.g.o.RestartAgent != nil, CanReboot: p.g.can.Power != nil,
	})
	p.again(d.After)
	if d.Store {
		h.Status = d.Status
		err := p.call(func(ctx context.Context) (err error) { h, err = p.g.o.Groups.PutCheckStatus(ctx, h); return err })
		if err != nil {
			return err
		}
	}
	var errs []error
	for _, r := range d.Remedies {
		if err := p.remedy(r); err != nil {
			errs = append(errs, fmt.Errorf("%s of machine %q: %w", r.Kind, r.Key, err))
		}
	}
	return errors.Join(errs...)
}

// remedy carries out one, once for each ID as far as this process knows; a provider and an agent know the ID too.
func (p *groupPass) remedy(r machine.Remedy) error {
	key := remedyKey{p.namespace, r.ID}
	p.remedies[key] = true
	p.g.mu.Lock()
	done, poll := p.g.done[key], p.g.polls[key]
	p.g.mu.Unlock()
	if wait := poll.Sub(p.g.o.Now()); done || wait > 0 {
		p.again(max(wait, 0))
		return nil
	}
	c := r.Choice
	if len(r.Annotations) > 0 {
		err := p.call(func(ctx context.Context) (err error) {
			c, err = p.g.o.Groups.Annotate(ctx, c, r.Annotations)
			return err
		})
		if err != nil {
			return err
		}
	}
	over, after, err := p.apply(r, c)
	if !over {
		p.again(after)
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.g.done[key] = over
	if !over && err == nil {
		p.g.polls[key] = p.g.o.Now().Add(after)
	}
	return err
}

func (p *groupPass) apply(r machine.Remedy, c machine.Choice) (over bool, after time.Duration, err error) {
	i := slices.IndexFunc(p.group.Machines, func(m machine.Machine) bool { return m.Key == r.Key && m.UID == r.UID })
	if i < 0 {
		return true, 0, nil
	}
	m := p.group.Machines[i]
	after = later
	err = p.call(func(ctx context.Context) error {
		switch r.Kind {
		case machine.RemedyReplace:
			over = true
			return p.g.o.Groups.DeleteMachine(ctx, c)
		case machine.RemedyRestartAgent:
			if over = true; p.g.o.RestartAgent == nil {
				return nil // who had begun it could; its time goes by
			}
			return p.g.o.RestartAgent(ctx, m, r.ID)
		case machine.RemedyReboot:
			if m.Instance == nil || p.g.can.Power == nil {
				over = true
				return nil
			}
			progress, err := p.g.can.Power.Reboot(ctx, m.Instance.Ref(), r.ID)
			if over = progress.Done; progress.AfterSeconds > 0 {
				after = pollAfter(progress.AfterSeconds)
			}
			return err
		}
		over = true // a quarantine is its annotation
		return nil
	})
	return over && err == nil, after, err
}
