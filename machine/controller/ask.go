// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// ask calls the provider. What it answers, or fails with, is learnt.
func (p *pass) ask(ctx context.Context, a machine.Action) machine.Outcome {
	o := p.call(ctx, a)
	class := provider.ClassOf(o.Err)
	switch a.Kind {
	case machine.Lookup:
		p.looked = true
		switch class {
		case provider.NotSupported:
			p.c.mu.Lock()
			p.c.noGet = true
			p.c.mu.Unlock()
			return machine.Outcome{Instance: *p.known(a.Token)}
		case provider.NotFound:
			p.mem.fresh = a.Token
			return o
		}
		p.asked = true
		if i := o.Instance; class == "" && i.State == provider.Pending && (i.Digest == "" || i.Digest == p.m.Digest) {
			p.mem.pending = a.Token
		}
	case machine.Create, machine.Adopt:
		if p.resumes() {
			p.mem.resumes.note(a.Token, p.c.o.Now())
		}
		p.asked, p.mem.fresh = true, ""
		p.refused(class)
	case machine.PlanUpdate:
	default:
		p.asked = !o.Progress.Done // what goes on is asked for again in the next pass
		p.pollNext(a, o)
	}
	// That there is no such instance is an answer to a look, and a failure of anything else.
	if class != provider.NotFound || a.Kind == machine.Create || a.Kind == machine.Adopt {
		p.failed(o.Err)
	}
	return o
}

// pollNext keeps when the provider wants to be asked again for what it goes on with.
func (p *pass) pollNext(a machine.Action, o machine.Outcome) {
	others := slices.DeleteFunc(slices.Clone(p.polls()), func(o machine.Poll) bool { return o.Kind == a.Kind && o.Token == a.Token })
	p.mem.polls, p.mem.pollOf = others, p.tried()
	if after := o.Progress.AfterSeconds; after > 0 && o.Err == nil && p.asked {
		p.mem.polls = append(others, machine.Poll{Kind: a.Kind, Token: a.Token, At: p.c.o.Now().Add(pollAfter(after))})
	}
}

func (p *pass) call(ctx context.Context, a machine.Action) (o machine.Outcome) {
	c, m := p.c, p.m
	ref := provider.Ref{Token: a.Token}
	if i := m.Instance; i != nil && i.Token == a.Token {
		ref.ProviderID = i.ProviderID
	}
	switch a.Kind {
	case machine.Lookup:
		o.Instance, o.Err = c.o.Provider.Get(ctx, ref)
		if other := o.Instance.Owner.Cluster; o.Err == nil && other != c.o.Cluster && other != "" {
			o = machine.Outcome{Err: provider.Errorf(provider.Unauthorized, "instance %q belongs to the cluster %q, this is %q", a.Token, other, c.o.Cluster)}
		}
	case machine.Create, machine.Adopt:
		o.Instance, o.Err = p.make(ctx, a)
	case machine.PlanUpdate:
		r, err := p.updateRequest(ctx, ref)
		if o.Err = err; err == nil {
			o.Plan, o.Err = c.can.Planner.Plan(ctx, r)
		}
	case machine.UpdateInstance:
		r, err := p.updateRequest(ctx, ref)
		if o.Err = err; err == nil {
			o.Progress, o.Err = c.can.Updater.Update(ctx, r)
		}
	case machine.Stop:
		o.Progress, o.Err = c.can.Power.Stop(ctx, ref)
	case machine.Delete:
		o.Progress, o.Err = p.delete(ctx, ref, m.Release.Mode)
	case machine.DestroyRetained:
		ref.ProviderID = a.Retained.ProviderID
		o.Progress, o.Err = p.delete(ctx, ref, provider.Destroy)
	}
	return o
}

// known is the instance as it was recorded, for a provider that can't say.
func (p *pass) known(token string) *provider.Instance {
	if i := p.m.Instance; i != nil {
		return i
	}
	return &provider.Instance{Token: token, State: provider.Pending, Owner: p.owner()}
}

// make asks for the instance of a token that was stored.
func (p *pass) make(ctx context.Context, a machine.Action) (provider.Instance, error) {
	m := p.m
	join, err := p.join(ctx)
	if err != nil {
		return provider.Instance{}, err
	}
	r := provider.CreateRequest{Token: a.Token, Owner: p.owner(), Digest: m.Status.Digest, Desired: m.Spec.Desired, Join: join}
	var i provider.Instance
	if a.Kind == machine.Adopt {
		i, err = p.c.can.Adopter.Adopt(ctx, provider.AdoptRequest{From: provider.Ref{Token: a.Retained.Token}, As: r})
	} else {
		i, err = p.c.o.Provider.Create(ctx, r)
	}
	if err == nil && i.Token != a.Token {
		err = provider.Errorf(provider.Internal, "the provider was asked for the token %q and answered with %q", a.Token, i.Token)
	}
	return i, err
}

func (p *pass) owner() provider.Owner {
	m := p.m
	return provider.Owner{Cluster: p.c.o.Cluster, Namespace: m.Namespace, Name: m.Name, UID: m.UID, Incarnation: m.Incarnation}
}

func (p *pass) updateRequest(ctx context.Context, ref provider.Ref) (provider.UpdateRequest, error) {
	join, err := p.join(ctx)
	return provider.UpdateRequest{
		Ref: ref, Cluster: p.c.o.Cluster, Digest: p.m.Spec.Digest(), Desired: p.m.Spec.Desired, Observed: p.m.Versions, Join: join,
	}, err
}

// delete needs no config and no Secret: what it can't read it goes without.
func (p *pass) delete(ctx context.Context, ref provider.Ref, mode provider.Mode) (provider.Progress, error) {
	r := provider.DeleteRequest{Ref: ref, Mode: mode, Cluster: p.c.o.Cluster}
	if d := p.m.Spec.Deletion.RetainFor; d > 0 && mode == provider.Retain {
		r.Until = p.c.o.Now().Add(d).Truncate(time.Second)
	}
	if name := p.m.Spec.Credentials; name != "" && p.c.o.Secrets != nil {
		if data, err := p.secret(ctx, name); err == nil {
			r.Credentials = data
		}
	}
	return p.c.o.Provider.Delete(ctx, r)
}

// join reads the Secrets anew for each call: a token for joining may have been renewed.
func (p *pass) join(ctx context.Context) (provider.Join, error) {
	j := provider.Join{Endpoint: p.c.o.Endpoint}
	var err error
	if name := p.m.Spec.Bootstrap; name != "" {
		if j.Bootstrap, err = p.secret(ctx, name); err != nil {
			return j, err
		}
	}
	if name := p.m.Spec.Credentials; name != "" {
		j.Credentials, err = p.secret(ctx, name)
	}
	return j, err
}

func (p *pass) secret(ctx context.Context, name string) (map[string][]byte, error) {
	if p.c.o.Secrets == nil {
		return nil, &machine.MissingError{Kind: "Secret", Name: name}
	}
	data, err := p.c.o.Secrets.Secret(ctx, machine.Key{Namespace: p.m.Namespace, Name: name})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &machine.MissingError{Kind: "Secret", Name: name}
	case err != nil:
		return nil, provider.Errorf(provider.Unavailable, "read Secret %q: %w", name, err)
	}
	return data, nil
}

// onNode changes the Node.
func (p *pass) onNode(ctx context.Context, a machine.Action) (o machine.Outcome) {
	if a.Kind == machine.FindNodes {
		p.found, o.Err = p.c.o.Nodes.Live(ctx, p.m.Token)
		o.Done = o.Err == nil
		p.nodesLive = o.Done
		return o
	}
	if a.Kind == machine.RemoveNode && a.Token != "" {
		return p.removeStray(ctx, a.Token)
	}
	nodes, err := p.ofToken(ctx)
	if err != nil || len(nodes) == 0 { // one that is gone meanwhile is found to be in the next decision
		return machine.Outcome{Done: err == nil && a.Kind != machine.RemoveNode, Err: err}
	}
	n := nodes[0]
	switch a.Kind {
	case machine.StartNode:
		o.Err = p.c.o.Nodes.Start(ctx, n, p.m)
		o.Done = o.Err == nil
		p.started = o.Done
	case machine.RemoveNode:
		p.noded = true
		p.nodesLive, p.found = false, nil
		return p.remove(ctx, nodes)
	case machine.Uncordon:
		if n.Marked { // before: a Node that is held still is found again
			if err := p.c.o.Nodes.Mark(ctx, n.NodeRef, false); err != nil {
				return machine.Outcome{Err: err}
			}
		}
		o.Done, o.Err = p.c.o.Drainer.Release(ctx, n.Name, n.UID, p.m.Incarnation)
		p.uncordoned = o.Done
	}
	return o
}

// remove removes Nodes, each by its UID. It is a proof that they are gone: it comes after that of the stop.
func (p *pass) remove(ctx context.Context, nodes []machine.Node) machine.Outcome {
	for _, n := range nodes {
		switch err := p.c.o.Nodes.Remove(ctx, n.NodeRef); {
		case errors.Is(err, fs.ErrExist):
			return machine.Outcome{Blocked: fmt.Sprintf("Node %q was registered anew", n.Name)}
		case err != nil:
			return machine.Outcome{Err: fmt.Errorf("remove Node %q: %w", n.Name, err)}
		}
	}
	return machine.Outcome{Done: true}
}

// removeStray removes what the workload cluster itself has of an instance that has ended. What is in the way is tried again without haste: nothing else waits for it.
func (p *pass) removeStray(ctx context.Context, token string) machine.Outcome {
	p.noded = true
	nodes, err := p.c.o.Nodes.Live(ctx, token)
	if err != nil {
		return machine.Outcome{Blocked: err.Error()}
	}
	o := p.remove(ctx, nodes)
	if o.Err != nil {
		o = machine.Outcome{Blocked: o.Err.Error()}
	}
	return o
}

// drain is one bounded step: the cordon first.
func (p *pass) drain(ctx context.Context) (o machine.Outcome, after time.Duration) {
	if p.c.o.Drainer == nil {
		return machine.Outcome{Done: true}, 0
	}
	nodes, err := p.ofToken(ctx)
	if err != nil || len(nodes) == 0 {
		return machine.Outcome{Done: err == nil && p.nodesLive, Blocked: "the Node is gone", Err: err}, soon
	}
	n, d := nodes[0], p.c.o.Drainer
	if done, err := d.Cordon(ctx, n.Name, n.UID, p.m.Incarnation, true); err != nil || !done {
		return machine.Outcome{Err: err, Blocked: "the Node is not cordoned yet"}, soon
	}
	if _, theirs := n.Annotations[machine.NoScaleDownAnnotation]; !theirs && p.m.Deleted.IsZero() { // of one that is deleted the autoscaler knows
		if err := p.c.o.Nodes.Mark(ctx, n.NodeRef, true); err != nil {
			return machine.Outcome{Err: err}, soon
		}
	}
	o.Done, o.Blocked, after, o.Err = d.Drain(ctx, n.Name, n.UID, p.m.Incarnation, false)
	p.nodesLive, p.found = false, nil // it is not as it was found any more
	if after <= 0 {
		after = later
	}
	return o, after
}
