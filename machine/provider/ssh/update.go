// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

// Plan says whether the update script would be run.
func (c *core) Plan(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Plan, error) {
	s, err := c.ours(ctx, r)
	if err != nil {
		return provider.Plan{}, wrapCall("plan", r.Ref.Token, err)
	}
	return s.plan(r, config), nil
}

// ours finds the machine that a request is about.
func (c *core) ours(ctx context.Context, r provider.UpdateRequest) (sight, error) {
	s, err := c.find(ctx, r.Ref)
	if err == nil && (s.rec.Owner.Cluster != r.Cluster || !s.rec.committed(r.Ref.Token) && r.Ref.Token != "") {
		err = foreign(r.Cluster)
	}
	return s, err
}

func (s sight) plan(r provider.UpdateRequest, config Config) provider.Plan {
	seen, _ := s.rec.settle(s.answer)
	switch {
	case seen.deleted():
		return provider.Plan{Method: provider.Unsupported, Reason: "the machine was deleted"}
	case seen.Digest == r.Digest && seen.Next == nil:
		return provider.Plan{Method: provider.Nothing}
	case !s.host.has(config.Selector):
		return provider.Plan{Method: provider.Replace, Reason: "host " + s.host.Name + " does not have the labels of the selector", Disrupts: true}
	case config.Update == "":
		return provider.Plan{Method: provider.Replace, Reason: "the config has no update script", Disrupts: true}
	}
	return provider.Plan{Method: provider.InPlace, Reason: "the update script is run on host " + s.host.Name, Disrupts: true}
}

// Update runs the update script of the new config on the machine.
func (c *core) Update(ctx context.Context, r provider.UpdateRequest, config Config) (p provider.Progress, err error) {
	if err = checkJoin(r.Join); err == nil {
		err = retry(ctx, func() (err error) {
			p, err = c.update(ctx, r, config)
			return err
		})
	}
	return p, wrapCall("update", r.Ref.Token, err)
}

func (c *core) update(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Progress, error) {
	s, err := c.ours(ctx, r)
	if err != nil {
		return provider.Progress{}, err
	}
	if s.rec.Phase == updating && s.rec.Next.Digest == r.Digest {
		return c.updated(ctx, s, r)
	}
	seen, v := s.rec.settle(s.answer)
	switch plan := s.plan(r, config); {
	case plan.Method == provider.Nothing:
		return provider.Progress{Done: true}, nil
	case plan.Method != provider.InPlace:
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "%s", plan.Reason)
	case v == underWay || v == cut:
		return waiting(sight{answer: answer{rec: &seen}, host: s.host}), nil
	case seen.adoption() != nil:
		return provider.Progress{}, provider.Errorf(provider.Conflict, "token %q is adopting it", seen.Next.Token)
	case seen.Phase != running:
		return provider.Progress{}, provider.Errorf(provider.Conflict, "the machine is %s: only one that runs can be updated", seen.Phase)
	}
	next := seen.spec
	next.Digest, next.Desired, next.Config = r.Digest, r.Desired, config
	if r.Join.Endpoint != "" {
		next.Endpoint = r.Join.Endpoint
	}
	seen.Phase, seen.Next, seen.Step, seen.Message = updating, &next, step{Kind: updateStep}, ""
	s.rec = &seen
	return c.updated(ctx, s, r)
}

func (c *core) updated(ctx context.Context, s sight, r provider.UpdateRequest) (provider.Progress, error) {
	s, v, err := c.advance(ctx, s, &r.Join)
	if err != nil || v == settled {
		return provider.Progress{Done: err == nil}, err
	}
	return waiting(s), nil
}
