// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"github.com/belayproject/belay/machine/provider"
)

func configRules() []rule {
	return []rule{
		promise("UnknownFieldIsInvalidConfig", "a config with an unknown field is InvalidConfig before there is any effect",
			func(k *checker) { k.refused(k.unknownField()) }, needUnknown),
		promise("UndecodableIsInvalidConfig", "a config that can't be decoded is InvalidConfig before there is any effect",
			func(k *checker) { k.refused(k.undecodable()) }),
		promise("ValidateAgreesWithCreate", "Validate takes what Create takes, calls the rest InvalidConfig, and has no effect", validates, needValidator),
		promise("InvalidConfigHasNoEffect", "no call with an invalid config changes or deletes an instance that is there", invalidOnAlive),
		promise("DeleteAfterInvalidConfig", "Delete works whatever config a machine has: one that never was valid, and one that became invalid", deleteInvalid),
		promise("CapacityHasNoEffect", "Capacity returns quantities and makes nothing", capacity, needCapacity),
	}
}

// broken returns the invalid configs that there are.
func (k *checker) broken() [][]byte {
	all := [][]byte{k.undecodable()}
	if !k.lacking(needUnknown, "a config with an unknown field") {
		all = append(all, k.unknownField())
	}
	return all
}

func (k *checker) refused(config []byte) {
	p, r := k.client(), k.with(k.machine(), config)
	for _, p := range []provider.Provider{p, k.client()} {
		_, err := k.create(p, r)
		k.wantClass("Create", err, provider.InvalidConfig)
	}
	k.wantNothing("after Create with an invalid config")
	if !k.lacking(needGet, "Get of what was refused") {
		_, err := k.get(p, provider.Ref{Token: r.Token})
		k.wantClass("Get of what was refused", err, provider.NotFound)
	}
	if !k.lacking(needList, "List of what was refused") {
		k.unlisted(p, r)
	}
}

func validates(k *checker) {
	for _, r := range k.valid() {
		if err := k.validate(r.Desired); err != nil {
			k.failf("Validate of a valid config: got %v, want no error", err)
		}
	}
	for _, config := range k.broken() {
		k.wantClass("Validate", k.validate(k.with(k.machine(), config).Desired), provider.InvalidConfig)
	}
	k.wantNothing("after Validate")
}

// valid returns a request for each config that is valid.
func (k *checker) valid() []provider.CreateRequest {
	all := []provider.CreateRequest{k.machine()}
	if k.h.OtherConfig != nil {
		all = append(all, k.with(k.machine(), k.h.OtherConfig))
	}
	for _, zone := range k.h.Zones {
		all = append(all, k.with(k.machine(), zone))
	}
	return all
}

func invalidOnAlive(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	before := k.count()
	for _, config := range k.broken() {
		bad := k.with(r, config)
		if _, err := k.create(p, bad); provider.ClassOf(err) != provider.InvalidConfig && provider.ClassOf(err) != provider.Conflict {
			k.failf("Create with a known token and an invalid config: got error %v, want InvalidConfig or Conflict", err)
		}
		if k.has(needUpdater) {
			_, err := k.update(k.updating(r, i, bad.Desired))
			k.wantClass("Update", err, provider.InvalidConfig)
		}
		if k.has(needPlanner) {
			if plan, err := k.plan(k.updating(r, i, bad.Desired)); err == nil && plan.Method != provider.Unsupported {
				k.failf("Plan: got %+v, want InvalidConfig or Unsupported", plan)
			}
		}
		if k.has(needValidator) {
			k.wantClass("Validate", k.validate(bad.Desired), provider.InvalidConfig)
		}
		k.wantSame(p, r, i)
	}
	if got := k.count(); got != before {
		k.failf("the backend holds %v, want %v", got, before)
	}
}

func deleteInvalid(k *checker) {
	p := k.client()
	for _, config := range k.broken() {
		never := k.with(k.machine(), config)
		_, _ = k.create(p, never) // another rule says that it is refused
		k.mustDelete(p, k.deletion(never, provider.Ref{Token: never.Token}, provider.Destroy))
		r := k.machine()
		i := k.running(p, r)
		_, _ = k.create(p, k.with(r, config))
		if k.has(needUpdater) {
			_, _ = k.update(k.updating(r, i, k.with(r, config).Desired))
		}
		k.mustDelete(k.client(), k.deletion(r, i.Ref(), provider.Destroy))
	}
	k.wantCount(Inventory{}, "after Delete")
}

func capacity(k *checker) {
	ctx, cancel := k.limited()
	defer cancel()
	for _, r := range k.valid() {
		got, err := k.can.Capacity.Capacity(ctx, r.Desired)
		k.see("Capacity", got, err)
		if err != nil || len(got) == 0 {
			k.failf("Capacity of a valid config: got %v, error %v, want quantities", got, err)
		}
		for name, quantity := range got {
			if name == "" || quantity == "" {
				k.failf("Capacity: got quantity %q of resource %q", quantity, name)
			}
		}
	}
	_, err := k.can.Capacity.Capacity(ctx, k.with(k.machine(), k.undecodable()).Desired)
	k.see("Capacity", nil, err)
	k.wantClass("Capacity of an invalid config", err, provider.InvalidConfig)
	k.wantNothing("after Capacity")
}
