// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func brokenCrashes() []breakage {
	return []breakage{
		{name: "a Create that crashed is in the way", caught: "CreateSurvivesCrash", apply: func(b *broken) { b.stuckCreate(errDead) }},
		{name: "a Delete that crashed is forgotten", caught: "DeleteSurvivesCrash", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.count(r.Ref.Token, 0) > 0 {
					return provider.Progress{Done: true}, nil
				}
				progress, err := b.Memory.Delete(ctx, r)
				if dead(ctx) {
					b.count(r.Ref.Token, 1)
				}
				return progress, err
			}
		}},
		{name: "finds only what is whole", caught: "DeleteAfterCrashedCreate", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				half := false
				b.within(func() { v := b.vms[r.Ref.Token]; half = v != nil && v.ProviderID == "" })
				if half {
					return provider.Progress{Done: true}, nil
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "an Update that crashed is in the way", caught: "UpdateSurvivesCrash", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				if b.count(r.Ref.Token, 0) > 0 {
					return provider.Progress{}, conflict(r.Ref.Token)
				}
				progress, err := b.Memory.Update(ctx, r)
				if dead(ctx) {
					b.count(r.Ref.Token, 1)
				}
				return progress, err
			}
		}},
		{name: "an Adopt that crashed is in the way", caught: "AdoptSurvivesCrash", apply: func(b *broken) { b.stuckAdopt(errDead) }},
	}
}

// stuckCreate refuses a token after a certain failure.
func (b *broken) stuckCreate(after error) {
	b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
		if b.count(r.Token, 0) > 0 {
			return provider.Instance{}, conflict(r.Token)
		}
		i, err := b.Memory.Create(ctx, r)
		if errors.Is(err, after) {
			b.count(r.Token, 1)
		}
		return i, err
	}
}

func (b *broken) stuckAdopt(after error) {
	b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
		if b.count(r.As.Token, 0) > 0 {
			return provider.Instance{}, conflict(r.As.Token)
		}
		i, err := b.Memory.Adopt(ctx, r)
		if errors.Is(err, after) {
			b.count(r.As.Token, 1)
		}
		return i, err
	}
}

func brokenFaults() []breakage {
	return slices.Concat(brokenReplies(), brokenClasses(), brokenWaits())
}

func brokenReplies() []breakage {
	return []breakage{
		{name: "makes another one after a lost reply", caught: "CreateSurvivesLostReply", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if b.count(r.Token, 0) > 0 {
					return b.second(ctx, r)
				}
				i, err := b.Memory.Create(ctx, r)
				if errors.Is(err, errLost) {
					b.count(r.Token, 1)
				}
				return i, err
			}
		}},
		{name: "misses what it has deleted", caught: "DeleteSurvivesLostReply", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.count(r.Ref.Token, 0) > 0 {
					return provider.Progress{}, missing(r.Ref.Token)
				}
				progress, err := b.Memory.Delete(ctx, r)
				if errors.Is(err, errLost) {
					b.count(r.Ref.Token, 1)
				}
				return progress, err
			}
		}},
		{name: "an Adopt whose reply was lost is in the way", caught: "AdoptSurvivesLostReply", apply: func(b *broken) { b.stuckAdopt(errLost) }},
		{name: "gets from a list", caught: "StaleListIsNotNotFound", apply: func(b *broken) {
			b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
				if i, err := b.Memory.Get(ctx, ref); err != nil || b.shows(ref.Token) {
					return i, err
				}
				return provider.Instance{}, missing(ref.Token)
			}
		}},
		{name: "creates what no list shows", caught: "StaleListMakesNoSecond", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if b.is(r.Token, "") || b.shows(r.Token) {
					return b.Memory.Create(ctx, r)
				}
				return b.second(ctx, r)
			}
		}},
		{name: "deletes what a list shows", caught: "StaleListHidesNothingFromDelete", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.shows(r.Ref.Token) {
					return b.Memory.Delete(ctx, r)
				}
				return provider.Progress{Done: true}, nil
			}
		}},
	}
}

// shows reports whether lists show a token now.
func (b *broken) shows(token string) (shows bool) {
	b.within(func() {
		shows = slices.ContainsFunc(b.shown(), func(i provider.Instance) bool { return i.Token == token })
	})
	return shows
}

// reclass has Create and Get fail with another class than they should.
func (b *broken) reclass(from, to provider.Class) {
	change := func(err error) error {
		if provider.ClassOf(err) == from {
			return provider.Errorf(to, "%v", err)
		}
		return err
	}
	b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
		i, err := b.Memory.Create(ctx, r)
		return i, change(err)
	}
	b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
		i, err := b.Memory.Get(ctx, ref)
		return i, change(err)
	}
}

func brokenClasses() []breakage {
	return []breakage{
		{name: "takes a limit for an accident", caught: "RateLimitIsRateLimited", apply: func(b *broken) { b.reclass(provider.RateLimited, provider.Internal) }},
		{name: "forgets for how long", caught: "RateLimitSaysAfter", apply: func(b *broken) { b.reclass(provider.RateLimited, provider.RateLimited) }},
		{name: "takes silence for absence", caught: "OutageIsUnavailable", apply: func(b *broken) {
			b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
				i, err := b.Memory.Get(ctx, ref)
				if provider.ClassOf(err) == provider.Unavailable && ctx.Err() == nil {
					err = missing(ref.Token)
				}
				return i, err
			}
		}},
		{name: "is done when nobody answers", caught: "OutageIsUnavailable", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				progress, err := b.Memory.Delete(ctx, r)
				if provider.ClassOf(err) == provider.Unavailable && ctx.Err() == nil {
					return provider.Progress{Done: true}, nil
				}
				return progress, err
			}
		}},
		{name: "lists nothing when it may not", caught: "RefusedCredentialsAreUnauthorized", apply: func(b *broken) {
			b.list = func(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
				all, err := b.Memory.List(ctx, s)
				if provider.ClassOf(err) == provider.Unauthorized {
					return nil, nil
				}
				return all, err
			}
		}},
		{name: "takes a lack of capacity for an accident", caught: "NoCapacityIsStockout", apply: func(b *broken) { b.reclass(provider.Stockout, provider.Internal) }},
	}
}

func brokenWaits() []breakage {
	return []breakage{
		{name: "waits for the start", caught: "NoCallWaits", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				for n := 0; n < 30 && err == nil && i.State == provider.Pending && ctx.Err() == nil; n++ {
					<-time.After(time.Second)
					i, err = b.Memory.Create(context.WithoutCancel(ctx), r)
				}
				return i, err
			}
		}, harness: func(h *Harness) { h.Wait = time.Minute }},
		{name: "says that it runs when it starts", caught: "NoCallWaits", apply: func(b *broken) {
			b.changeInstances(func(i *provider.Instance) {
				if i.State == provider.Pending {
					i.State = provider.Running
				}
			})
		}},
		{name: "takes its time", caught: "CallsEndWithTheirCtx", apply: func(b *broken) {
			b.list = func(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
				<-time.After(soon + 200*time.Millisecond)
				return b.Memory.List(ctx, s)
			}
		}},
		{name: "waits for an answer for ever", caught: "HangingCallsEndWithTheirCtx", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				return b.Memory.Update(context.WithoutCancel(ctx), r)
			}
		}},
	}
}

func brokenLast() []breakage {
	return []breakage{
		{name: "lists one page", caught: "ListReturnsMany", apply: func(b *broken) {
			b.changeList(func(all []provider.Instance) []provider.Instance { return all[:min(len(all), 40)] })
		}},
		{name: "lists pages that overlap", caught: "ListReturnsMany", apply: func(b *broken) {
			b.changeList(func(all []provider.Instance) []provider.Instance { return slices.Concat(all, all[max(len(all)-1, 0):]) })
		}},
		{name: "says what it was sent", caught: "SecretsStaySecret", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				if err != nil && ctx.Err() == nil {
					err = provider.Errorf(provider.ClassOf(err), "%w in %+v", err, r)
				}
				return i, err
			}
		}},
		{name: "shows the credentials", caught: "SecretsStaySecret", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				i.Message = "as " + string(r.Join.Credentials["canary"])
				return i, err
			}
		}},
	}
}
