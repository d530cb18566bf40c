// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

// Adopt gives a retained host, with its data, to a new token, and bootstraps it. A machine that is alive gets another token and owner.
func (c *core) Adopt(ctx context.Context, r provider.AdoptRequest, config Config) (i provider.Instance, err error) {
	from, _, err := named(r.From)
	if err == nil {
		err = able(r.As)
	}
	if err == nil {
		err = retry(ctx, func() (err error) {
			i, err = c.adopt(ctx, r, from, config)
			return err
		})
	}
	return i, wrapCall("adopt as", r.As.Token, err)
}

func (c *core) adopt(ctx context.Context, r provider.AdoptRequest, from string, config Config) (provider.Instance, error) {
	all, err := c.survey(ctx, r.As.Token, "")
	if err != nil {
		return provider.Instance{}, err
	}
	there := claims(all, r.As.Token)
	switch {
	case len(there) > 1 && there[1].rec.committed(r.As.Token):
		return provider.Instance{}, twice(there)
	case len(there) > 0 && there[0].rec.committed(r.As.Token):
		return c.adopted(ctx, there[0], r.As, from)
	case spent(all):
		return provider.Instance{}, usedUp()
	}
	if err := unanswered(all); err != nil {
		return provider.Instance{}, err
	}
	sources := claims(all, from)
	if len(sources) == 0 || sources[0].rec.Token != from || sources[0].rec.Owner.Cluster != r.As.Owner.Cluster {
		return provider.Instance{}, provider.Errorf(provider.NotFound, "no host of %d has a claim of %q in cluster %q", len(all), from, r.As.Owner.Cluster)
	}
	mine, err := c.offer(ctx, sources[0], r.As, config)
	if err != nil {
		return provider.Instance{}, err
	}
	s, err := c.commit(ctx, mine, r.As.Token, &r.As.Join)
	if err != nil {
		return provider.Instance{}, err
	}
	return s.view(r.As.Token), nil
}

// adopted returns the instance that a token has already, if it was made from that one.
func (c *core) adopted(ctx context.Context, s sight, as provider.CreateRequest, from string) (provider.Instance, error) {
	if from == as.Token {
		return provider.Instance{}, provider.Errorf(provider.Conflict, "a machine is adopted with a new token")
	}
	if s.rec.From != from {
		return provider.Instance{}, provider.Errorf(provider.Conflict, "the token is in use: its machine was not made from %q", from)
	}
	return c.known(ctx, s, as)
}

// offer writes down who is adopting a machine. Nothing else is done yet.
func (c *core) offer(ctx context.Context, s sight, as provider.CreateRequest, config Config) (sight, error) {
	seen, v := s.rec.settle(s.answer)
	next := newSpec(as, config)
	next.From = seen.Token
	if a := seen.adoption(); a != nil {
		if a.Token != as.Token {
			return sight{}, provider.Errorf(provider.Conflict, "token %q is adopting it already", a.Token)
		}
		return s, fits(s, as)
	}
	w := swap{forbid: as.Token}
	switch {
	case seen.Phase == retained:
		seen.Step = step{newID(), bootstrapStep}
		w.put, w.files = seen.Step.ID, next.files(s.host, seen.Step, as.Join, c.bootFile(s.host))
	case seen.Phase == running && v == settled:
		// What it is made of stays.
		next.Digest, next.Desired, next.Config, next.Endpoint = seen.Digest, seen.Desired, seen.Config, seen.Endpoint
	default:
		return sight{}, provider.Errorf(provider.Conflict, "%q is %s: want it retained, or running", seen.Token, seen.Phase)
	}
	seen.Next = &next
	return c.write(ctx, s, seen, w)
}
