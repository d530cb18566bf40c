// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

func brokenReads() []breakage {
	return []breakage{
		{name: "no instance is an accident", caught: "GetOfUnknownIsNotFound", apply: func(b *broken) {
			b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
				i, err := b.Memory.Get(ctx, ref)
				if provider.ClassOf(err) == provider.NotFound {
					err = provider.Errorf(provider.Internal, "%v", err)
				}
				return i, err
			}
		}},
		{name: "no instance is an empty one", caught: "GetOfUnknownIsNotFound", apply: func(b *broken) {
			b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
				i, err := b.Memory.Get(ctx, ref)
				if provider.ClassOf(err) == provider.NotFound {
					err = nil
				}
				return i, err
			}
		}},
		{name: "forgets tags", caught: "TagsComeBackFromGet", apply: func(*broken) {}, harness: forgetsTags},
		{name: "cuts names", caught: "TagsComeBackFromGet", apply: func(b *broken) {
			b.changeInstances(func(i *provider.Instance) { i.Owner.Name = i.Owner.Name[:min(len(i.Owner.Name), 63)] })
		}},
		{name: "lists no digest", caught: "TagsComeBackFromList", apply: func(b *broken) {
			b.changeList(func(all []provider.Instance) []provider.Instance {
				for n := range all {
					all[n].Digest = ""
				}
				return all
			})
		}},
		{name: "ignores the scope", caught: "ListIsOfOneCluster", apply: func(b *broken) {
			b.list = func(context.Context, provider.Scope) ([]provider.Instance, error) { return b.Instances(), nil }
		}},
		{name: "lists no retained", caught: "ListHoldsRetained", apply: func(b *broken) { b.unlist(provider.Retained) }},
		{name: "lists no stopped", caught: "ListHoldsStopped", apply: func(b *broken) { b.unlist(provider.Stopped) }},
	}
}

// forgetsTags has each client know the owners of what it has made itself.
func forgetsTags(h *Harness) {
	m := new(Memory)
	*h = m.Harness()
	h.New = func(context.Context) (provider.Provider, error) {
		b, own := newBroken(), map[string]bool{}
		*b = broken{Memory: m, create: b.create, get: b.get, list: m.List, delete: m.Delete, plan: m.Plan, update: m.Update, validate: m.Validate,
			stop: m.Stop, reboot: m.Reboot, adopt: m.Adopt, capacity: m.Capacity, console: m.Console, seen: map[string]int{}}
		b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
			b.within(func() { own[r.Token] = true })
			return m.Create(ctx, r)
		}
		b.get = func(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
			i, err := m.Get(ctx, ref)
			b.within(func() {
				if !own[ref.Token] {
					i.Owner = provider.Owner{Cluster: i.Owner.Cluster}
				}
			})
			return i, err
		}
		return b, nil
	}
}

func (b *broken) changeList(change func(all []provider.Instance) []provider.Instance) {
	b.list = func(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
		all, err := b.Memory.List(ctx, s)
		return change(all), err
	}
}

func (b *broken) unlist(state provider.State) {
	b.changeList(func(all []provider.Instance) []provider.Instance {
		return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.State == state })
	})
}

func brokenConfigs() []breakage {
	return []breakage{
		{name: "decodes leniently", caught: "UnknownFieldIsInvalidConfig", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				if err != nil && strings.Contains(err.Error(), "is not known") {
					r.Desired.Config = nil
					return b.Memory.Create(ctx, r)
				}
				return i, err
			}
		}},
		{name: "decodes too late", caught: "UndecodableIsInvalidConfig", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				i, err := b.Memory.Create(ctx, r)
				if provider.ClassOf(err) == provider.InvalidConfig {
					r.Desired.Config = nil
					_, _ = b.Memory.Create(ctx, r)
				}
				return i, err
			}
		}},
		{name: "takes everything for valid", caught: "ValidateAgreesWithCreate", apply: func(b *broken) {
			b.validate = func(context.Context, provider.Desired) error { return nil }
		}},
		{name: "deletes on invalid config", caught: "InvalidConfigHasNoEffect", apply: deletesOnInvalid},
		{name: "does not delete with an invalid config", caught: "DeleteAfterInvalidConfig", apply: func(b *broken) {
			b.create = func(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
				if _, err := decodeConfig(r.Desired.Config); err != nil {
					b.count(r.Token, 1)
				}
				return b.Memory.Create(ctx, r)
			}
			b.delete = func(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
				if b.count(r.Ref.Token, 0) > 0 {
					return provider.Progress{}, provider.Errorf(provider.InvalidConfig, "delete %q: its config is invalid", r.Ref.Token)
				}
				return b.Memory.Delete(ctx, r)
			}
		}},
		{name: "has no idea of capacity", caught: "CapacityHasNoEffect", apply: func(b *broken) {
			b.capacity = func(context.Context, provider.Desired) (map[string]string, error) { return nil, nil }
		}},
	}
}

func deletesOnInvalid(b *broken) {
	b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
		progress, err := b.Memory.Update(ctx, r)
		if provider.ClassOf(err) == provider.InvalidConfig {
			b.Lose(r.Ref.Token)
		}
		return progress, err
	}
}
