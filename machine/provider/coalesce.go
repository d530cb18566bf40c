// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"
)

// CoalesceOptions say which calls of Get are made one. The zero value is safe.
type CoalesceOptions struct {
	// Window is how old an answer may be. Zero and less is a second.
	Window time.Duration
}

// CoalesceGet answers many calls of Get from one List of a scope. The first Get in a window is made; further ones wait for one List, and are answered
// from it until it is as old as the window, as they are from a List that the caller makes.
//
// A token that is not in the list is asked for with a real Get, so that [NotFound] stays authoritative; so is each one after a call that may have
// changed it, until a List was begun after that. An answer is never older than the window, but may be behind where the provider's List is: what has
// to be certain, as that an instance is stopped, is to be had from Delete and Stop.
//
// If the List fails as [Unavailable] or [RateLimited], so does Get. If it fails otherwise, every Get of the window is made.
func CoalesceGet(p Provider, s Scope, o CoalesceOptions) Provider {
	p = orAbsent(p)
	if o.Window <= 0 {
		o.Window = time.Second
	}
	return coalesced{p, &coalescer{inner: p, scope: s, window: o.Window, changed: map[string]change{}}}
}

type coalesced struct {
	inner Provider
	c     *coalescer
}

func (p coalesced) Create(ctx context.Context, r CreateRequest) (Instance, error) {
	defer p.c.change(r.Token)()
	return p.inner.Create(ctx, r)
}

func (p coalesced) Delete(ctx context.Context, r DeleteRequest) (Progress, error) {
	defer p.c.change(tokenIn(r.Ref))()
	return p.inner.Delete(ctx, r)
}

func (p coalesced) Get(ctx context.Context, ref Ref) (Instance, error) {
	return p.c.get(ctx, ref, time.Now())
}

func (p coalesced) List(ctx context.Context, s Scope) ([]Instance, error) {
	if s != p.c.scope {
		return p.inner.List(ctx, s)
	}
	return p.c.list(ctx)
}

// Abilities are those of the inner provider.
func (p coalesced) Abilities() Abilities {
	inner := AbilitiesOf(p.inner)
	a := inner
	if inner.Updater != nil {
		a.Updater = coalescedAbilities{p.c, inner}
	}
	if inner.Power != nil {
		a.Power = coalescedAbilities{p.c, inner}
	}
	if inner.Adopter != nil {
		a.Adopter = coalescedAbilities{p.c, inner}
	}
	return a
}

type coalescedAbilities struct {
	c     *coalescer
	inner Abilities
}

func (a coalescedAbilities) Update(ctx context.Context, r UpdateRequest) (Progress, error) {
	defer a.c.change(tokenIn(r.Ref))()
	return a.inner.Updater.Update(ctx, r)
}

func (a coalescedAbilities) Stop(ctx context.Context, ref Ref) (Progress, error) {
	defer a.c.change(tokenIn(ref))()
	return a.inner.Power.Stop(ctx, ref)
}

func (a coalescedAbilities) Reboot(ctx context.Context, ref Ref, id string) (Progress, error) {
	defer a.c.change(tokenIn(ref))()
	return a.inner.Power.Reboot(ctx, ref, id)
}

func (a coalescedAbilities) Adopt(ctx context.Context, r AdoptRequest) (Instance, error) {
	defer a.c.change(tokenIn(r.From))()
	defer a.c.change(r.As.Token)()
	return a.inner.Adopter.Adopt(ctx, r)
}

func tokenIn(ref Ref) string {
	if ref.Token != "" {
		return ref.Token
	}
	return TokenOf(ref.ProviderID)
}
