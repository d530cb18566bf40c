// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// Times after which something that was not done is tried again.
const (
	soon  = time.Second
	later = 10 * time.Second
)

// act has an effect, and learns what came of it. pause ends the pass, for that time: what was asked for is not done yet.
func (p *pass) act(ctx context.Context, a machine.Action) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	begun := p.c.o.Now()
	o, pause, err := p.do(ctx, a)
	if count := p.c.o.Metrics.Call; count != nil {
		count(a.Kind, provider.ClassOf(cmp.Or(err, o.Err)), p.c.o.Now().Sub(begun))
	}
	if err != nil {
		return 0, err
	}
	p.agreed = a.Kind == machine.AskGates && o.Done && o.Err == nil
	p.m.Status = machine.Learn(p.m, p.m.Status, a, o, p.c.o.Now())
	return pause, nil
}

// do is the one place where effects are. Errors of the store end the pass, those of others are part of the outcome.
func (p *pass) do(ctx context.Context, a machine.Action) (machine.Outcome, time.Duration, error) {
	switch a.Kind {
	case machine.SetFinalizer, machine.RemoveFinalizer, machine.SetProviderID:
		return machine.Outcome{}, 0, p.write(ctx, a)
	case machine.Lookup, machine.Create, machine.Adopt, machine.PlanUpdate, machine.UpdateInstance, machine.Stop, machine.Delete, machine.DestroyRetained:
		return p.ask(ctx, a), 0, nil
	}
	var o machine.Outcome
	pause := later
	switch a.Kind {
	case machine.FindNodes, machine.StartNode, machine.Uncordon, machine.RemoveNode:
		o = p.onNode(ctx, a)
	case machine.Drain:
		o, pause = p.drain(ctx)
	case machine.Backup:
		o = p.backup(ctx, a)
	default:
		o = p.permission(ctx, a)
	}
	if o.Done && o.Err == nil {
		pause = 0
	} else if o.Err != nil {
		pause = soon
	}
	return o, pause, nil
}

// write changes the machine itself, and keeps the status that was decided.
func (p *pass) write(ctx context.Context, a machine.Action) error {
	var m machine.Machine
	var err error
	switch a.Kind {
	case machine.SetProviderID:
		m, err = p.c.o.Machines.SetProviderID(ctx, p.m, a.ProviderID)
	default:
		m, err = p.c.o.Machines.SetFinalizer(ctx, p.m, a.Kind == machine.SetFinalizer)
		if a.Kind == machine.RemoveFinalizer && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s of machine %q: %w", a.Kind, p.m.Key, err)
	}
	s := p.m.Status
	p.stored = m.Status
	p.m, p.live = m, true
	p.m.Status = s
	p.notice()
	return nil
}

// permission asks whoever has to agree.
func (p *pass) permission(ctx context.Context, a machine.Action) machine.Outcome {
	var o machine.Outcome
	switch a.Kind {
	case machine.TakeSlot:
		o.Done = true
		if b := p.c.o.Budget; b != nil {
			m := p.m
			p.mem.took, p.mem.loan = &m, a.Attempt
			ref := nodeOf(m)
			o.Done, o.Blocked, o.Err = b.Take(ctx, m.Key.String(), m.UID, a.Attempt, ref.Name, ref.UID)
		}
	case machine.FreeSlot:
		o.Done = true
		if b := p.c.o.Budget; b != nil {
			if o.Err = b.Free(ctx, p.m.Key.String(), p.m.UID, a.Attempt); o.Err == nil {
				p.mem.took = nil
			}
		}
	case machine.Leave:
		o.Done = true
		if h := p.c.o.Members; h != nil {
			o.Done, o.Blocked, o.Err = h.Leave(ctx, p.m)
		}
	case machine.AskGates:
		o.Done = true
		for _, g := range p.c.o.Gates {
			blocked, err := p.check(ctx, g, a.Unseen)
			if u, ok := g.(Unseeing); ok && err != nil && a.Unseen {
				blocked, err = u.CheckUnseen(ctx, p.m)
				o.Unseen = true
			}
			if blocked != "" || err != nil {
				return machine.Outcome{Blocked: blocked, Err: err}
			}
		}
	}
	return o
}

// check asks a gate. With unseen there is time left to ask it once more, about less.
func (p *pass) check(ctx context.Context, g Gate, unseen bool) (string, error) {
	if unseen {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.c.o.CallTimeout/2)
		defer cancel()
	}
	return g.Check(ctx, p.m)
}

// nodeOf is the Node of a machine; empty if it has none.
func nodeOf(m machine.Machine) machine.NodeRef {
	if m.Node == nil {
		return machine.NodeRef{}
	}
	return *m.Node
}

// blame tells whoever shares the budget that a machine has failed while it was disturbed.
func (p *pass) blame(ctx context.Context, s machine.Status) error {
	b, ok := p.c.o.Budget.(Blame)
	held := s.Update != nil && s.Update.Slot || s.Release != nil && s.Release.Slot
	// What was broken before the change was planned is not the change's fault.
	before := s.Failure != nil && s.Failure.Reason == machine.ReasonInstanceBroken && s.Update != nil && s.Failure.Since.Before(s.Update.Since)
	if !ok || !held || s.Phase != machine.PhaseFailed || s.Failure == nil || before {
		p.mem.blamed = ""
		return nil
	}
	if p.mem.blamed == s.Failure.Reason {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	why := s.Failure.Reason + ": " + s.Failure.Message
	if err := b.Fail(ctx, p.m.Key.String(), p.m.UID, why, machine.Protected(p.m.Spec.Roles)); err != nil {
		return fmt.Errorf("machine %q has failed: %w", p.m.Key, err)
	}
	p.mem.blamed = s.Failure.Reason
	return nil
}

// backup marks the Node, so that everybody sees that it is in maintenance, and has done what comes before the change.
func (p *pass) backup(ctx context.Context, a machine.Action) (o machine.Outcome) {
	if d := p.c.o.Drainer; d != nil {
		nodes, err := p.c.o.Nodes.Of(ctx, p.m.Token)
		if err != nil {
			return machine.Outcome{Err: err}
		}
		for _, n := range nodes {
			if done, err := d.Cordon(ctx, n.Name, n.UID, p.m.Incarnation, false); err != nil || !done {
				return machine.Outcome{Err: err, Blocked: "the Node is not marked yet"}
			}
		}
	}
	o.Done, o.Blocked, o.Err = p.c.o.Backup.Before(ctx, p.m, a.Attempt)
	return o
}
