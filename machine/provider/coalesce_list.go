// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// coalescer has the last list. What happens is numbered, as times may be equal.
type coalescer struct {
	inner  Provider
	scope  Scope
	window time.Duration

	mu      sync.Mutex
	events  int
	changed map[string]change
	cache   listing
	running int       // lists that were begun and have not come back
	flight  *flight   // the one that others wait for
	asked   time.Time // when a Get was last made for want of a list
}

// change is the last thing that was done to a token, and how many calls are at it now.
type change struct{ event, running int }

// listing is one List.
type listing struct {
	event int // when it was begun; 0 is never
	at    time.Time
	known map[string]Instance
}

// flight is a List that others wait for. Its fields are set when done is closed.
type flight struct {
	done chan struct{}
	err  error // what they fail with
}

// change marks a token as changed from now until the returned function was called.
func (c *coalescer) change(token string) (end func()) {
	mark := func(running int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events++
		ch := change{c.events, c.changed[token].running + running}
		c.changed[token] = ch
		if ch.running == 0 && c.running == 0 && time.Since(c.cache.at) >= c.window { // no list knows it as it was
			delete(c.changed, token)
		}
	}
	mark(1)
	return func() { mark(-1) }
}

// list makes a List and keeps what it has found. What fails otherwise than for a while is kept as an empty one, so that it is not made all the time.
func (c *coalescer) list(ctx context.Context) (all []Instance, err error) {
	c.mu.Lock()
	c.events++
	c.running++
	l := listing{event: c.events, at: time.Now()}
	c.mu.Unlock()
	returned := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		if returned && (err == nil || ctx.Err() == nil && !passing(err)) {
			c.keep(l, all)
		}
	}()
	all, err = c.inner.List(ctx, c.scope)
	returned = true
	return all, err
}

func passing(err error) bool { return ClassOf(err) == Unavailable || ClassOf(err) == RateLimited }

// keep makes a list the one to answer from, unless a later one is there. The caller holds the lock.
func (c *coalescer) keep(l listing, all []Instance) {
	if l.event < c.cache.event {
		return
	}
	l.known = make(map[string]Instance, len(all))
	for _, i := range all {
		l.known[i.Token] = copied(i)
	}
	c.cache = l
	maps.DeleteFunc(c.changed, func(_ string, ch change) bool { return ch.running == 0 && ch.event < l.event })
}

func copied(i Instance) Instance {
	i.Addresses, i.Disks = slices.Clone(i.Addresses), slices.Clone(i.Disks)
	return i
}

// get answers from a list that was not older than the window when the call came, if it can. Each turn of the loop ends or waits for a List; a caller
// that waits for one that was begun after it came ends with it, unless whoever made that one has gone.
func (c *coalescer) get(ctx context.Context, ref Ref, came time.Time) (Instance, error) {
	for {
		i, f, next := c.look(ref, came)
		switch next {
		case answer:
			return i, nil
		case ask:
			return c.inner.Get(ctx, ref)
		case lead:
			c.lead(ctx, f)
		case follow:
		}
		select {
		case <-f.done:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return Instance{}, Errorf(Unavailable, "get instance %q: waiting for a list: %w", ref.Token, err)
		}
		if f.err != nil {
			return Instance{}, &Error{ClassOf(f.err), AfterOf(f.err), fmt.Errorf("get instance %q: %w", ref.Token, f.err)}
		}
	}
}

// step is what a Get does next.
type step int

const (
	answer step = iota // from the list
	ask                // the provider
	lead               // make a list
	follow             // wait for the list that somebody makes
)

func (c *coalescer) look(ref Ref, came time.Time) (Instance, *flight, step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token := tokenIn(ref)
	ch := c.changed[token]
	switch now := time.Now(); {
	case ch.running > 0 || token == "":
		return Instance{}, nil, ask
	case c.cache.event > 0 && came.Sub(c.cache.at) < c.window:
		i, ok := c.cache.known[token]
		if !ok || ch.event > c.cache.event || ref.ProviderID != "" && ref.ProviderID != i.ProviderID {
			return Instance{}, nil, ask
		}
		return copied(i), nil, answer
	case c.flight != nil:
		return Instance{}, c.flight, follow
	case now.Sub(c.asked) >= c.window:
		c.asked = now
		return Instance{}, nil, ask
	}
	c.flight = &flight{done: make(chan struct{})}
	return Instance{}, c.flight, lead
}

// lead makes the List of a flight. What others must not make again at once is their error too.
func (c *coalescer) lead(ctx context.Context, f *flight) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flight = nil
		close(f.done)
	}()
	if _, err := c.list(ctx); err != nil && ctx.Err() == nil && passing(err) {
		f.err = err
	}
}
