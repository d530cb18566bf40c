// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Create claims a host for a token and bootstraps it.
//
// A claim is made in two steps, as hosts know nothing of each other. First a free host is reserved, then all others are asked whether they have the
// token too, and only then is the claim committed, if it is still the one that was reserved. Of two callers that reserve two hosts at least one sees the
// other's, so that one of the claims is withdrawn before anything is done for it.
func (c *core) Create(ctx context.Context, r provider.CreateRequest, config Config) (i provider.Instance, err error) {
	if err = able(r); err == nil {
		err = retry(ctx, func() (err error) {
			i, err = c.create(ctx, r, config)
			return err
		})
	}
	return i, wrapCall("create", r.Token, err)
}

func (c *core) create(ctx context.Context, r provider.CreateRequest, config Config) (provider.Instance, error) {
	all, err := c.survey(ctx, r.Token, "")
	if err != nil {
		return provider.Instance{}, err
	}
	found := claims(all, r.Token)
	switch {
	case len(found) > 1 && found[1].rec.committed(r.Token):
		return provider.Instance{}, twice(found)
	case len(found) > 0 && found[0].rec.committed(r.Token):
		return c.known(ctx, found[0], r)
	case spent(all):
		return provider.Instance{}, usedUp()
	}
	if err := unanswered(all); err != nil {
		return provider.Instance{}, err
	}
	var mine sight
	if len(found) > 0 {
		mine = found[0]
	} else if mine, err = c.reserve(ctx, all, r, config); err != nil {
		return provider.Instance{}, err
	}
	if err := fits(mine, r); err != nil {
		return provider.Instance{}, err
	}
	s, err := c.commit(ctx, mine, r.Token, &r.Join)
	if err != nil {
		return provider.Instance{}, err
	}
	return s.view(r.Token), nil
}

// known returns the instance that a token has already.
func (c *core) known(ctx context.Context, s sight, r provider.CreateRequest) (provider.Instance, error) {
	if err := fits(s, r); err != nil {
		return provider.Instance{}, err
	}
	if s.rec.Phase != starting {
		return s.view(r.Token), nil
	}
	s, v, err := c.advance(ctx, s, &r.Join)
	if v == failed && s.rec != nil && s.rec.Phase == broken {
		err = nil // the instance says it
	}
	if err != nil {
		return provider.Instance{}, err
	}
	return s.view(r.Token), nil
}

// fits returns a Conflict if the claim of a token is for something else.
func fits(s sight, r provider.CreateRequest) error {
	owner, takes := s.rec.Owner, s.rec.takes
	if a := s.rec.adoption(); a != nil && a.Token == r.Token {
		owner, takes = a.Owner, a.takes
	}
	switch {
	case owner.Cluster != r.Owner.Cluster || owner.UID != r.Owner.UID:
		return provider.Errorf(provider.Conflict, "the token belongs to another owner: machine %q of cluster %q", owner.Name, owner.Cluster)
	case !takes(r.Digest):
		return provider.Errorf(provider.Conflict, "the token is in use on host %q with another digest than %.80q", s.host.Name, r.Digest)
	}
	return nil
}

func usedUp() error { return provider.Errorf(provider.Conflict, "the token is used up") }

// reserve claims one of the hosts that are free, with nothing done for it yet.
func (c *core) reserve(ctx context.Context, all []sight, r provider.CreateRequest, config Config) (sight, error) {
	var (
		fit   = slices.DeleteFunc(slices.Clone(all), func(s sight) bool { return !s.host.has(config.Selector) })
		raced bool
	)
	slices.SortFunc(fit, func(a, b sight) int { return strings.Compare(place(r.Token, a.host), place(r.Token, b.host)) })
	for _, s := range fit {
		if s.rec != nil || s.data {
			continue
		}
		next := record{Phase: reserved, spec: newSpec(r, config), Step: step{newID(), bootstrapStep}}
		files := next.files(s.host, next.Step, r.Join, c.bootFile(s.host))
		mine, err := c.write(ctx, s, next, swap{forbid: r.Token, put: next.Step.ID, files: files})
		if err == nil || errors.Is(err, errRaced) && mine.rec != nil && mine.rec.of(r.Token) {
			return mine, nil
		}
		if !errors.Is(err, errRaced) {
			return sight{}, err
		}
		raced = true
	}
	if raced {
		return sight{}, errRaced
	}
	return sight{}, stockout(all, fit)
}

func stockout(all, fit []sight) error {
	unclean := 0
	for _, s := range fit {
		if s.rec == nil && s.data || s.rec != nil && s.rec.Phase == dirty {
			unclean++
		}
	}
	return provider.Errorf(provider.Stockout, "no host is free: the pool has %d, %d have the labels, and of these %d are dirty and %d in use",
		len(all), len(fit), unclean, len(fit)-unclean)
}

func newSpec(r provider.CreateRequest, config Config) spec {
	return spec{Token: r.Token, Owner: r.Owner, Created: r.Digest, Digest: r.Digest, Desired: r.Desired, Config: config, Endpoint: r.Join.Endpoint}
}

// commit makes a claim that was seen the one of its token, and begins what it is for. All other hosts are asked after the claim was seen: whoever
// commits another one later has to see this one.
func (c *core) commit(ctx context.Context, mine sight, token string, join *provider.Join) (sight, error) {
	others, err := c.survey(ctx, token, mine.host.Name)
	if err == nil {
		err = unanswered(others)
	}
	if err != nil {
		return sight{}, err
	}
	if mine.used || spent(others) {
		if _, err := c.withdraw(ctx, mine, token); err != nil {
			return sight{}, err
		}
		return sight{}, usedUp()
	}
	found := claims(append(others, mine), token)
	if found[0].host.Name != mine.host.Name {
		if _, err := c.withdraw(ctx, mine, token); err != nil {
			return sight{}, err
		}
		return sight{}, errRaced
	}
	for _, rival := range found[1:] {
		if _, err := c.withdraw(ctx, rival, token); err != nil {
			return sight{}, err
		}
	}
	return c.take(ctx, mine, token, join)
}

// withdraw gives up a claim that is not committed. The token is not used up by that.
func (c *core) withdraw(ctx context.Context, s sight, token string) (sight, error) {
	if a := s.rec.adoption(); a != nil && a.Token == token {
		next := *s.rec
		next.Next, next.Step = nil, step{}
		return c.write(ctx, s, next, swap{})
	}
	return c.release(ctx, s, "")
}

// take commits a claim.
func (c *core) take(ctx context.Context, s sight, token string, join *provider.Join) (sight, error) {
	next, w := *s.rec, swap{forbid: token}
	if a := next.adoption(); a != nil {
		w.spend = next.Token
		next.spec, next.Next = *a, nil
	}
	if next.Phase == reserved || next.Phase == retained {
		next.Phase, next.Until, next.Message = starting, time.Time{}, ""
		w.start = next.Step.ID
		if st, ok := s.steps[next.Step.ID]; !ok || st.state != stepReady {
			if join == nil {
				return s, errNoFiles
			}
			next.Step = step{newID(), bootstrapStep}
			w.put, w.start, w.files = next.Step.ID, next.Step.ID, next.files(s.host, next.Step, *join, c.bootFile(s.host))
		}
	}
	s, err := c.write(ctx, s, next, w)
	if err != nil {
		return s, err
	}
	s, v, err := c.advance(ctx, s, join)
	if v == failed && s.rec != nil && s.rec.Phase == broken {
		err = nil // the instance says it
	}
	return s, err
}

// able checks what a request needs before there is any effect.
func able(r provider.CreateRequest) error {
	if err := provider.CheckToken(r.Token); err != nil {
		return err
	}
	if r.Owner.Cluster == "" {
		return provider.Errorf(provider.InvalidConfig, "the owner names no cluster")
	}
	v := r.Desired.Versions
	for name, text := range map[string]string{
		"cluster": r.Owner.Cluster, "namespace": r.Owner.Namespace, "name": r.Owner.Name, "uid": r.Owner.UID, "endpoint": r.Join.Endpoint,
		"versions.kubelet": v.Kubelet, "versions.runtime.name": v.Runtime.Name, "versions.runtime.version": v.Runtime.Version,
	} {
		if strings.ContainsRune(text, 0) {
			return provider.Errorf(provider.InvalidConfig, "%s has a zero byte", name)
		}
	}
	return checkJoin(r.Join)
}
