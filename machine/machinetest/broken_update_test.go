// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

func brokenUpdates() []breakage {
	return []breakage{
		{name: "carries its plan out", caught: "PlanHasNoEffect", apply: func(b *broken) {
			b.plan = func(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
				plan, err := b.Memory.Plan(ctx, r)
				_, _ = b.Memory.Update(ctx, r)
				return plan, err
			}
		}},
		{name: "plans in place what is replaced", caught: "PlanIsWhatUpdateDoes", apply: func(b *broken) {
			b.plan = func(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
				plan, err := b.Memory.Plan(ctx, r)
				if plan.Method == provider.Replace {
					plan.Method = provider.InPlace
				}
				return plan, err
			}
		}},
		{name: "loses data that the plan keeps", caught: "PlanIsWhatUpdateDoes", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				progress, err := b.Memory.Update(ctx, r)
				b.within(func() {
					if v := b.vms[r.Ref.Token]; v != nil && progress.Done {
						b.disks[v.Disks[0].ID] = nil
					}
				})
				return progress, err
			}
		}},
		{name: "replaces silently", caught: "UpdateKeepsIdentity", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				progress, err := b.Memory.Update(ctx, r)
				b.within(func() {
					if v := b.vms[r.Ref.Token]; v != nil && progress.Done {
						v.ProviderID = provider.ProviderID("memory", "new", v.Token)
					}
				})
				return progress, err
			}
		}},
	}
}

func brokenRefusals() []breakage {
	return []breakage{
		{name: "stops before it refuses", caught: "RefusedUpdateLeavesAll", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				progress, err := b.Memory.Update(ctx, r)
				if provider.ClassOf(err) == provider.NotSupported {
					_, _ = b.Memory.Stop(ctx, r.Ref)
				}
				return progress, err
			}
		}},
		{name: "updates for any cluster", caught: "UpdateInOtherClusterIsNotFound", apply: func(b *broken) {
			b.update = func(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
				b.within(func() {
					if v := b.vms[r.Ref.Token]; v != nil {
						r.Cluster = v.Owner.Cluster
					}
				})
				return b.Memory.Update(ctx, r)
			}
		}},
	}
}

func brokenPower() []breakage {
	return []breakage{
		{name: "stops once", caught: "StopIsIdempotent", apply: func(b *broken) {
			b.stop = func(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
				if b.is(ref.Token, provider.Stopped) {
					return provider.Progress{}, conflict(ref.Token)
				}
				return b.Memory.Stop(ctx, ref)
			}
		}},
		{name: "deletes only what runs", caught: "StoppedCanBeDeleted", apply: func(b *broken) {
			b.beforeDelete(func(r provider.DeleteRequest) error {
				if b.is(r.Ref.Token, provider.Stopped) {
					return conflict(r.Ref.Token)
				}
				return nil
			})
		}},
		{name: "knows each id once", caught: "RebootIsIdempotent", apply: func(b *broken) {
			b.reboot = func(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
				if b.count(ref.Token+id, 1) > 0 {
					return provider.Progress{}, conflict(id)
				}
				return b.Memory.Reboot(ctx, ref, id)
			}
		}},
		{name: "reboots at each call", caught: "RebootOncePerID", apply: func(b *broken) {
			b.reboot = func(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
				b.within(func() {
					if v := b.vms[ref.Token]; v != nil {
						delete(v.rebooted, id)
					}
				})
				return b.Memory.Reboot(ctx, ref, id)
			}
		}},
		{name: "has stopped what never was", caught: "PowerOfUnknownIsNotFound", apply: func(b *broken) {
			b.stop = func(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
				if b.is(ref.Token, "") {
					return provider.Progress{Done: true, Stopped: true}, nil
				}
				return b.Memory.Stop(ctx, ref)
			}
		}},
		{name: "prints everything", caught: "ConsoleIsBounded", apply: func(b *broken) {
			b.console = func(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
				return b.Memory.Console(ctx, ref, limit+10)
			}
		}},
	}
}
