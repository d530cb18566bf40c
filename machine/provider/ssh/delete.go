// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// Delete stops a machine and keeps its data, or wipes it and gives the host back.
func (c *core) Delete(ctx context.Context, r provider.DeleteRequest) (p provider.Progress, err error) {
	token, _, err := named(r.Ref)
	if err == nil {
		err = retry(ctx, func() (err error) {
			p, err = c.remove(ctx, r, token)
			return err
		})
	}
	return p, wrapCall("delete", token, err)
}

func (c *core) remove(ctx context.Context, r provider.DeleteRequest, token string) (provider.Progress, error) {
	s, all, err := c.seek(ctx, r.Ref)
	if err != nil {
		return provider.Progress{}, err
	}
	if s.rec == nil {
		return c.useUp(ctx, all, token)
	}
	owner := s.rec.Owner
	if a := s.rec.adoption(); a != nil && a.Token == token {
		owner = a.Owner
	}
	if owner.Cluster != r.Cluster {
		return provider.Progress{}, foreign(r.Cluster)
	}
	if s.rec.committed(token) {
		return c.end(ctx, s, r)
	}
	// Nothing was done for it. There may be another such claim, so that it is looked for again.
	if s.rec.Token == token {
		_, err = c.release(ctx, s, token)
	} else {
		next := *s.rec
		next.Next, next.Step = nil, step{}
		_, err = c.write(ctx, s, next, swap{spend: token})
	}
	if err == nil {
		err = errRaced
	}
	return provider.Progress{}, err
}

// useUp writes down that a token without a claim makes nothing any more, and has it looked for again: a Create that has claimed a host before does not
// see that, but is seen then, and one that claims a host later asks all others whether the token is used up.
func (c *core) useUp(ctx context.Context, all []sight, token string) (provider.Progress, error) {
	if len(all) == 0 || spent(all) {
		return provider.Progress{Done: true, Stopped: true}, nil
	}
	first := slices.MinFunc(all, func(a, b sight) int { return strings.Compare(place(token, a.host), place(token, b.host)) })
	if _, err := c.exchange(ctx, first, swap{next: first.raw, spend: token}); err != nil {
		return provider.Progress{}, err
	}
	return provider.Progress{}, errRaced
}

func foreign(cluster string) error {
	return provider.Errorf(provider.NotFound, "there is no such machine in cluster %.80q", cluster)
}

// end gives the order, which replaces an earlier one as long as nothing is wiped, and goes on with it.
func (c *core) end(ctx context.Context, s sight, r provider.DeleteRequest) (provider.Progress, error) {
	next, then := *s.rec, retained
	if r.Mode == provider.Destroy {
		then = cleaning
	}
	switch {
	case next.Phase == cleaning:
	case next.Phase == halting && next.Then == then:
	case next.Phase == halting:
		next.Then, next.Until = then, r.Until
		var err error
		if s, err = c.write(ctx, s, next, swap{}); err != nil {
			return provider.Progress{}, err
		}
		next = *s.rec
	case (next.Phase == retained || next.Phase == dirty) && then == cleaning:
		next.Phase, next.Step, next.Next, next.Message = cleaning, step{Kind: cleanupStep}, nil, ""
	case next.Phase == retained:
		if !next.Until.Equal(r.Until) {
			next.Until = r.Until
			var err error
			if s, err = c.write(ctx, s, next, swap{}); err != nil {
				return provider.Progress{}, err
			}
		}
	case next.Phase == dirty:
	default:
		next.Phase, next.Then, next.Step, next.Next, next.Message = halting, then, step{Kind: stopStep}, nil, ""
		next.Until = r.Until
	}
	s.rec = &next
	host := s.host.Name
	s, v, err := c.advance(ctx, s, nil)
	return endProgress(host, s, v, err)
}

// endProgress is the answer to a Delete. One whose host still ends the processes of an earlier step is not done, and
// has not failed.
func endProgress(host string, s sight, v verdict, err error) (provider.Progress, error) {
	if errors.Is(err, errEnding) {
		return provider.Progress{Message: "host " + host + ": " + errEnding.Error(), AfterSeconds: 1}, nil
	}
	return progress(s, v), err
}

// progress says how far the end of a machine is.
func progress(s sight, v verdict) provider.Progress {
	switch {
	case v == failed:
		return provider.Progress{}
	case s.rec == nil || s.rec.Phase == stopped:
		return provider.Progress{Done: true, Stopped: true}
	case s.rec.Phase == retained || s.rec.Phase == dirty:
		return provider.Progress{Done: true, Stopped: true, Message: s.rec.Message, Retained: s.host.disks()}
	}
	return waiting(s)
}

// waiting is the progress of what is under way.
func waiting(s sight) provider.Progress {
	p := provider.Progress{Stopped: s.rec.Phase == cleaning, Message: s.rec.Message, AfterSeconds: 1}
	if p.Message == "" {
		p.Message = "the " + string(s.rec.Step.Kind) + " script runs on host " + s.host.Name
	}
	return p
}
