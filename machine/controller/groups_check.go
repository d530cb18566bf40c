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
func (p *groupPass) check(key machine.Key) error {
	h, ok := p.findCheck(key)
	if !ok {
		return nil
	}
	v := p.healthView(h)
	if !p.live && len(finished(h.Status, machine.DecideHealth(v).Status)) > 0 { // no cache says that a disruption is over
		if err := p.read(true); err != nil {
			return err
		}
		if h, ok = p.findCheck(key); !ok {
			return nil
		}
		v = p.healthView(h)
	}
	d, refused := p.granted(v)
	p.again(d.After)
	if told := p.g.o.Skipped; told != nil && len(d.Skipped) > 0 {
		told(key, d.Skipped)
	}
	if err := p.storeCheck(h, d); err != nil {
		return errors.Join(refused, err)
	}
	errs := []error{refused}
	for _, r := range d.Remedies {
		if err := p.remedy(r); err != nil {
			errs = append(errs, fmt.Errorf("%s of machine %q: %w", r.Kind, r.Key, err))
		}
	}
	return errors.Join(errs...)
}

func (p *groupPass) findCheck(key machine.Key) (machine.HealthCheck, bool) {
	i := slices.IndexFunc(p.group.Checks, func(h machine.HealthCheck) bool { return h.Key == key })
	if i < 0 {
		return machine.HealthCheck{}, false
	}
	return p.group.Checks[i], true
}

func (p *groupPass) healthView(h machine.HealthCheck) machine.HealthView {
	v := machine.HealthView{
		Check: h, Now: p.g.o.Now(), Matches: p.group.Matches[h.UID], Machines: p.group.Machines, Nodes: p.health, NodesKnown: p.known && p.g.o.Doctor != nil,
		CanRestartAgent: p.g.o.RestartAgent != nil, CanReboot: p.g.can.Power != nil, Budget: p.left(),
	}
	for _, other := range p.group.Checks {
		if other.UID != h.UID {
			v.Others = append(v.Others, other.Status.Attempts...)
		}
	}
	return v
}

// storeCheck gives back what is over, and stores what begins.
func (p *groupPass) storeCheck(h machine.HealthCheck, d machine.HealthDecision) error {
	for _, a := range finished(h.Status, d.Status) { // before: what nobody has on record any more, nobody would give back
		if err := p.giveBack(a.Key, a.UID); err != nil {
			return err
		}
	}
	if !d.Store {
		return nil
	}
	h.Status = d.Status
	err := p.call(func(ctx context.Context) (err error) { h, err = p.g.o.Groups.PutCheckStatus(ctx, h); return err })
	if err != nil {
		return err
	}
	checks := slices.Clone(p.group.Checks)
	for i := range checks {
		if checks[i].Key == h.Key {
			checks[i] = h // for the next one: it is no other's machine
		}
	}
	p.group.Checks = checks
	return nil
}

// remedy carries out one, once for each ID as far as this process knows; a provider and an agent know the ID too. What disrupts has its slot, whoever has given it back
// since it was granted: another process may be late.
func (p *groupPass) remedy(r machine.Remedy) error {
	key := remedyKey{p.namespace, r.ID}
	p.remedies[key] = true
	if blocked, err := p.borrow(r); err != nil || blocked != "" {
		p.again(later)
		return err
	}
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
	m, there := p.findMachine(r.Choice)
	if !there {
		return true, 0, nil
	}
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

func (p *groupPass) findMachine(c machine.Choice) (machine.Machine, bool) {
	i := slices.IndexFunc(p.group.Machines, func(m machine.Machine) bool { return m.Key == c.Key && m.UID == c.UID })
	if i < 0 {
		return machine.Machine{}, false
	}
	return p.group.Machines[i], true
}
