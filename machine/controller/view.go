// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/machine"
)

// view is all that the decision looks at.
func (p *pass) view(ctx context.Context) (machine.View, error) {
	c, m := p.c, p.m
	v := machine.View{
		Machine: m, Now: c.o.Now(), Cluster: c.o.Cluster, Timeouts: c.o.Timeouts, NotBefore: p.mem.notBefore, Polls: p.polls(),
		Asked: p.asked, Agreed: p.agreed, NodeAsked: p.noded, NodeStarted: p.started,
		Ungated: len(c.o.Gates) == 0 && c.o.Members == nil && c.o.Budget == nil, Fresh: p.mem.fresh != "" && p.mem.fresh == m.Token,
		Resume: p.resumes(),
		Can:    machine.Can{Get: c.canGet(), Plan: c.can.Planner != nil, Update: c.can.Updater != nil, Stop: c.can.Power != nil, Adopt: c.can.Adopter != nil},
	}
	p.holdBack(&v)
	if err := p.twins(ctx, &v); err != nil {
		return v, err
	}
	c.fromList(p, &v)
	p.nodes(ctx, &v)
	v.Invalid = c.invalid(ctx, m)
	if cp := c.o.ControlPlane; cp != nil && m.Spec.Versions.Kubelet != "" {
		v.Skew = cp.Skew(ctx, m.Spec.Versions.Kubelet)
	}
	v.Backup = c.o.Backup != nil
	p.busy(ctx, &v)
	if st := c.o.Starter; st != nil && len(v.Nodes) == 1 && m.Step.Name != machine.StepReady {
		v.Started = c.started(ctx, st, m, v.Nodes[0])
	}
	return v, nil
}

// started asks whether the roles of a machine work. That nothing is missing is not believed of an answer that comes after its time.
func (c *Controller) started(ctx context.Context, st Starter, m machine.Machine, n machine.Node) string {
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	missing := st.Started(ctx, m, n)
	if missing == "" && ctx.Err() != nil {
		return fmt.Sprintf("the checks of the roles %q have not ended within %v", m.Spec.Roles, c.o.CallTimeout)
	}
	return missing
}

// resumes reports whether the instance of the present token was Pending in the pass before, and is to be carried forward again.
func (p *pass) resumes() bool {
	return p.resume != "" && p.resume == p.m.Token && p.mem.resumes.due(p.m.Token, p.c.o.Now())
}

// Times between two calls that carry a start forward. Most starts need none: each is there for one that was cut off.
const (
	resumeMin = 15 * time.Second
	resumeMax = time.Minute
)

// A resumes is when the instance of a token was carried forward last, and how long it is left alone after that.
type resumes struct {
	token string
	last  time.Time
	wait  time.Duration
}

func (r resumes) due(token string, now time.Time) bool {
	return r.token != token || now.Sub(r.last) >= r.wait
}

// note takes down that the instance of a token was carried forward.
func (r *resumes) note(token string, now time.Time) {
	var last time.Duration
	if r.token == token {
		last = r.wait
	}
	*r = resumes{token, now, backoff.Next(last, resumeMin, resumeMax)}
}

// holdBack has the next token wait after some that were refused.
func (p *pass) holdBack(v *machine.View) {
	if r := p.m.Release; r != nil && r.Conflict && r.Released && p.mem.noToken.After(v.NotBefore) {
		v.NotBefore = p.mem.noToken
	}
}

func (p *pass) twins(ctx context.Context, v *machine.View) error {
	id := p.m.Spec.ProviderID
	if i := p.m.Instance; i != nil && i.ProviderID != "" {
		id = i.ProviderID
	}
	if id == "" {
		return nil
	}
	twins, err := p.c.o.Machines.Twins(ctx, p.m, id)
	if err != nil {
		return fmt.Errorf("look for machines with the ProviderID %q: %w", id, err)
	}
	v.Twins = twins
	return nil
}

// fromList takes what the last list says, if it was begun after this version of the machine was seen.
func (c *Controller) fromList(p *pass, v *machine.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.looked || c.list == nil || !c.listed.After(p.mem.seen) || p.m.Token == "" {
		return
	}
	v.Lists = c.listed
	if i, ok := c.list[p.m.Token]; ok {
		v.Listed = &i
	}
}

// ofToken are the Nodes of the machine: those that were found in this pass, or else those that a cache has.
func (p *pass) ofToken(ctx context.Context) ([]machine.Node, error) {
	if p.nodesLive {
		return slices.Clone(p.found), nil
	}
	return p.c.o.Nodes.Of(ctx, p.m.Token)
}

func (p *pass) nodes(ctx context.Context, v *machine.View) {
	c := p.c
	if p.m.Token == "" {
		v.NodesKnown = true
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	nodes, err := p.ofToken(ctx)
	v.NodesLive = p.nodesLive
	for i := range nodes {
		if c.o.Drainer != nil && !p.uncordoned {
			_, held := c.o.Drainer.Held(nodes[i].Annotations)
			nodes[i].Held = held || nodes[i].Marked
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.unknown = time.Time{}
		v.Nodes, v.NodesKnown = nodes, true
	case c.unknown.IsZero():
		c.unknown = c.o.Now()
	}
	v.NodesUnknown = c.unknown
}

// canGet is false for a provider that has said that it can't.
func (c *Controller) canGet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.noGet
}

// busy says which machine of the control plane goes first. Who has claimed its turn asks the store itself, which has that claim: nobody is past his own then who has not seen it.
// A list that can't be had is shown as what goes first.
func (p *pass) busy(ctx context.Context, v *machine.View) {
	m := p.m
	if _, sent := m.Changing(); sent || m.Update == nil && m.Release == nil || !machine.Protected(m.Spec.Roles) {
		return
	}
	list := p.c.o.Machines.List
	if m.Step.Name == machine.StepBackup {
		list = p.c.o.Machines.ListLive
	}
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	all, err := list(ctx)
	if err != nil {
		v.Busy = fmt.Sprintf("looking for other machines of the control plane: %v", err)
	}
	for _, o := range all {
		why, yields := m.WaitsFor(o)
		if why != "" && v.Busy == "" || yields && !v.Yield {
			v.Busy, v.Yield = why, yields
		}
	}
}
