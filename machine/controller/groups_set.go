// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// set brings one set forward.
func (p *groupPass) set(key machine.Key) error {
	s, ok := p.findSet(key)
	if !ok {
		return nil
	}
	d := machine.DecideSet(p.setView(s, nil))
	if d.NeedLive && !p.live {
		if err := p.read(true); err != nil {
			return err
		}
		if s, ok = p.findSet(key); !ok {
			return nil
		}
		d = machine.DecideSet(p.setView(s, nil))
	}
	if refused := p.resize(s, d); refused != nil {
		d = machine.DecideSet(p.setView(s, refused))
	}
	p.again(d.After)
	if d.Store {
		s.Status = d.Status
		err := p.call(func(ctx context.Context) (err error) { s, err = p.g.o.Groups.PutSetStatus(ctx, s); return err })
		if err != nil {
			return err
		}
	}
	return p.carrySet(s, d)
}

func (p *groupPass) findSet(key machine.Key) (machine.Set, bool) {
	i := slices.IndexFunc(p.group.Sets, func(s machine.Set) bool { return s.Key == key })
	if i < 0 {
		return machine.Set{}, false
	}
	return p.group.Sets[i], true
}

func (p *groupPass) setView(s machine.Set, refused *machine.Failure) machine.SetView {
	return machine.SetView{
		Set: s, Now: p.g.o.Now(), Machines: p.group.Machines, Live: p.live, Restored: p.restored(s.Name, s.UID),
		Nodes: p.health, Cost: p.cost, Refused: refused, Matches: p.group.Matches[s.UID],
	}
}

// restored means that there are machines of an owner of the same name that is another one: set and machines were brought back from a copy.
func (p *groupPass) restored(name, uid string) bool {
	return slices.ContainsFunc(p.group.Machines, func(m machine.Machine) bool { return m.Owner.Name == name && m.Owner.UID != uid && m.Owner.UID != "" })
}

// resize asks the provider's group, where there is one, before anything is created. A namespace has no dot, so that the name is of one set.
func (p *groupPass) resize(s machine.Set, d machine.SetDecision) *machine.Failure {
	if p.g.can.Group == nil || len(d.Create) == 0 {
		return nil
	}
	err := p.call(func(ctx context.Context) error {
		return p.g.can.Group.Resize(ctx, s.Namespace+"."+s.Name, d.Size, s.Spec.Template.Spec.Desired)
	})
	if err == nil {
		return nil
	}
	return &machine.Failure{Reason: string(provider.ClassOf(err)), Message: err.Error(), Since: p.g.o.Now()}
}

func (p *groupPass) carrySet(s machine.Set, d machine.SetDecision) error {
	var errs []error
	for _, c := range d.Adopt {
		errs = append(errs, p.call(func(ctx context.Context) error {
			return p.g.o.Groups.OwnMachine(ctx, c, machine.Owner{UID: s.UID, Name: s.Name})
		}))
	}
	errs = append(errs, p.create(s, d.Create))
	for _, c := range d.Delete {
		errs = append(errs, p.call(func(ctx context.Context) error { return p.g.o.Groups.DeleteMachine(ctx, c) }))
	}
	if len(d.Adopt)+len(d.Create)+len(d.Delete) > 0 {
		p.stale()
		p.again(soonAgain)
	}
	return errors.Join(errs...)
}

// createAtOnce is how many machines are asked for at once at most.
const createAtOnce = 16

// create asks for a set's machines: for one, then for twice as many each time. One that is refused ends it, as the rest would be refused as well; the next
// pass goes on, backing off.
func (p *groupPass) create(s machine.Set, wanted []machine.Reservation) error {
	var failed []error
	for n := 1; len(wanted) > 0 && len(failed) == 0; n *= 2 {
		now := wanted[:min(n, createAtOnce, len(wanted))]
		wanted = wanted[len(now):]
		machines := make([]machine.Machine, len(now))
		for i, r := range now {
			machines[i] = s.Machine(r)
			machines[i].Finalizer = true // its first effect follows at once
		}
		ctx, cancel := context.WithTimeout(p.ctx, p.g.o.CallTimeout)
		for _, err := range p.g.o.Groups.CreateMachines(ctx, machines) {
			if err != nil && !errors.Is(err, fs.ErrExist) {
				failed = append(failed, err)
			}
		}
		cancel()
	}
	return errors.Join(failed...)
}
