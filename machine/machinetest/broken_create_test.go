// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func brokenCreates() []breakage {
	return []breakage{
		{name: "not idempotent", caught: "CreateIsIdempotent", apply: notIdempotent},
		{name: "one call at a time", caught: "CreateIsIdempotentConcurrently", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				defer b.count(r.Token, -1)
				if b.count(r.Token, 1) > 0 {
					return provider.Instance{}, conflict(r.Token)
				}
				<-time.After(time.Millisecond)
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "looks before it leaps", caught: "CreateIsIdempotentConcurrently", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				_, err := b.Memory.Get(ctx, provider.Ref{Token: r.Token})
				absent := provider.ClassOf(err) == provider.NotFound
				<-time.After(time.Millisecond)
				if absent && b.count(r.Token, 1) > 0 {
					return b.second(ctx, r)
				}
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "goes on without ctx", caught: "CreateSurvivesCancel", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				if ctx.Err() != nil {
					_, _ = b.second(ctx, r)
				}
				return i, err
			}
		}},
		{name: "ignores the digest", caught: "OtherDigestIsConflict", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if i, err := b.Memory.Get(ctx, provider.Ref{Token: r.Token}); err == nil {
					return i, nil
				}
				return b.Memory.Create(ctx, r)
			}
		}},
	}
}

func brokenTokens() []breakage {
	return []breakage{
		{name: "tokens for each zone", caught: "OtherZoneIsConflict", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if i, err := b.Memory.Get(ctx, provider.Ref{Token: r.Token}); err == nil && strings.Contains(string(r.Desired.Config), `"zone": "b"`) {
					_, _ = b.second(ctx, r)
					return i, nil
				}
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "forgets what was destroyed", caught: "UsedUpTokenIsConflict", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				b.within(func() { delete(b.used, r.Token) })
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "takes a token for a path", caught: "BadTokenIsRefused", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				r.Ref.Token = path.Base(r.Ref.Token)
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "takes any token", caught: "BadTokenIsRefused", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if provider.CheckToken(r.Token) != nil {
					r.Token = "token"
				}
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "an ID of its own", caught: "ProviderIDEndsInToken", apply: func(b *broken) {
			b.changeInstances(func(i *provider.Instance) {
				if i.ProviderID != "" {
					i.ProviderID += "-0"
				}
			})
		}},
		{name: "reuses an ID", caught: "ProviderIDIsNeverReused", apply: reusesID},
	}
}

// changeInstances has Create and Get return something else.
func (b *broken) changeInstances(change func(i *provider.Instance)) {
	b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
		i, err := b.Memory.Create(ctx, r)
		change(&i)
		return i, err
	}
	b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
		i, err := b.Memory.Get(ctx, ref)
		change(&i)
		return i, err
	}
}

func notIdempotent(b *broken) {
	b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
		if b.count(r.Token, 1) > 0 {
			return b.second(ctx, r)
		}
		return b.Memory.Create(ctx, r)
	}
}

// reusesID gives all incarnations of a machine one ID.
func reusesID(b *broken) {
	b.changeInstances(func(i *provider.Instance) {
		if i.ProviderID != "" {
			i.ProviderID = provider.ProviderID("memory", "a", i.Owner.UID)
		}
	})
}
