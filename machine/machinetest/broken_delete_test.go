// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func brokenDeletes() []breakage {
	return []breakage{
		{name: "deletes once", caught: "DeleteIsIdempotent", apply: func(b *broken) {
			b.beforeDelete(func(r provider.DeleteRequest) error {
				if b.is(r.Ref.Token, "") {
					return missing(r.Ref.Token)
				}
				return nil
			})
		}},
		{name: "one deletion at a time", caught: "DeleteIsIdempotentConcurrently", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				defer b.count(r.Ref.Token, -1)
				if b.count(r.Ref.Token, 1) > 0 {
					return provider.Progress{}, conflict(r.Ref.Token)
				}
				<-time.After(time.Millisecond)
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "attaches disks too late", caught: "DeleteLeavesNothingOfRaces", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				<-time.After(3 * time.Millisecond)
				b.within(func() {
					for _, d := range i.Disks {
						b.disks[d.ID] = nil
					}
				})
				return i, err
			}
		}},
		{name: "misses what never was", caught: "DeleteOfUnknownIsDone", apply: func(b *broken) {
			b.beforeDelete(func(r provider.DeleteRequest) error {
				if b.is(r.Ref.Token, "") {
					return missing(r.Ref.Token)
				}
				return nil
			})
		}},
	}
}

func brokenReach() []breakage {
	return []breakage{
		{name: "forgets what it was told to delete", caught: "DeleteUsesUpUnknown", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.is(r.Ref.Token, "") {
					return provider.Progress{Done: true, Stopped: true}, nil
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "wants a ProviderID", caught: "DeleteByTokenAlone", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if r.Ref.ProviderID == "" {
					return provider.Progress{Done: true}, nil
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "does not know its ProviderID", caught: "DeleteByProviderID", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if r.Ref.ProviderID != "" {
					return provider.Progress{Done: true}, nil
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "done too early", caught: "DeleteDoneMeansStopped", apply: func(b *broken) {
			b.Polls = 3
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				progress, err := b.Memory.Delete(ctx, r)
				progress.Stopped = err == nil
				return progress, err
			}
		}},
		{name: "leaks disks", caught: "DestroyLeavesNothing", apply: leaksDisks},
		{name: "leaks disks in the end", caught: "NothingIsLeft", apply: leaksDisks},
		{name: "ignores the cluster", caught: "DeleteInOtherClusterIsNotFound", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				b.within(func() {
					if v := b.vms[r.Ref.Token]; v != nil {
						r.Cluster = v.Owner.Cluster
					}
				})
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "deletes by prefix", caught: "DeleteOfOneLeavesOthers", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				b.within(func() {
					for _, token := range slices.Collect(maps.Keys(b.vms)) {
						if strings.HasPrefix(token, r.Ref.Token) && token != r.Ref.Token {
							b.remove(b.vms[token])
						}
					}
				})
				return b.Memory.Delete(ctx, r)
			}
		}},
	}
}

// is reports whether an instance has a state; "" is that of one that is not there.
func (b *broken) is(token string, state provider.State) (is bool) {
	b.within(func() {
		v := b.vms[token]
		is = v == nil && state == "" || v != nil && v.State == state
	})
	return is
}

func (b *broken) beforeDelete(refuse func(r provider.DeleteRequest) error) {
	b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
		if err := refuse(r); err != nil {
			return provider.Progress{}, err
		}
		return b.Memory.Delete(ctx, r)
	}
}

func leaksDisks(b *broken) {
	b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
		was := !b.is(r.Ref.Token, "")
		progress, err := b.Memory.Delete(ctx, r)
		if was && progress.Done && r.Mode == provider.Destroy {
			b.within(func() { b.disks["disk-"+r.Ref.Token] = nil })
		}
		return progress, err
	}
}

func brokenDisks() []breakage {
	return []breakage{
		{name: "erases on Retain", caught: "RetainKeepsDisks", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				progress, err := b.Memory.Delete(ctx, r)
				b.within(func() {
					if v := b.vms[r.Ref.Token]; v != nil {
						b.disks[v.Disks[0].ID] = nil
					}
				})
				return progress, err
			}
		}},
		{name: "keeps silent on what it keeps", caught: "RetainKeepsDisks", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				progress, err := b.Memory.Delete(ctx, r)
				progress.Retained = nil
				return progress, err
			}
		}},
		{name: "forgets for how long", caught: "RetainedKeepsUntil", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				r.Until = time.Time{}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "destroys by default", caught: "RetainIsTheDefault", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if r.Mode != provider.Retain {
					r.Mode = provider.Destroy
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "revives", caught: "RetainedIsNotRevived", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				b.within(func() {
					if v := b.vms[r.Token]; v != nil && v.State == provider.Retained {
						v.State = provider.Pending
					}
				})
				return b.Memory.Create(ctx, r)
			}
		}},
		{name: "keeps what was retained for ever", caught: "DestroyAfterRetain", apply: func(b *broken) {
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.is(r.Ref.Token, provider.Retained) {
					return provider.Progress{Done: true}, nil
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
	}
}

func brokenAdopts() []breakage {
	return []breakage{
		{name: "adopts without data", caught: "AdoptBringsDisksBack", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				i, err := b.Memory.Adopt(ctx, r)
				b.within(func() {
					for _, d := range i.Disks {
						b.disks[d.ID] = nil
					}
				})
				return i, err
			}
		}},
		{name: "adopts once", caught: "AdoptIsIdempotent", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				if b.is(r.From.Token, "") {
					return provider.Instance{}, missing(r.From.Token)
				}
				return b.Memory.Adopt(ctx, r)
			}
		}},
		{name: "adopts for whoever asks", caught: "AdoptGivesDisksToOne", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				there := !b.is(r.From.Token, "")
				<-time.After(time.Millisecond)
				i, err := b.Memory.Adopt(ctx, r)
				if there && provider.ClassOf(err) == provider.NotFound {
					return b.Memory.Create(ctx, r.As)
				}
				return i, err
			}
		}},
		{name: "uses the old token again", caught: "AdoptUsesUpTheOldToken", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				i, err := b.Memory.Adopt(ctx, r)
				b.within(func() { delete(b.used, r.From.Token) })
				return i, err
			}
		}},
		{name: "adopts nothing", caught: "AdoptOfUnknownIsNotFound", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				i, err := b.Memory.Adopt(ctx, r)
				if provider.ClassOf(err) == provider.NotFound {
					return b.Memory.Create(ctx, r.As)
				}
				return i, err
			}
		}},
		{name: "restarts what it adopts", caught: "AdoptOfAliveMovesTags", apply: func(b *broken) {
			b.adopt = func(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
				b.within(func() {
					if v := b.vms[r.From.Token]; v != nil && v.State == provider.Running {
						v.boots++
					}
				})
				return b.Memory.Adopt(ctx, r)
			}
		}},
	}
}
