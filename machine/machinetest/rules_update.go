// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"github.com/belayproject/belay/machine/provider"
)

func updateRules() []rule {
	return []rule{
		promise("PlanHasNoEffect", "Plan changes nothing, and says Nothing where nothing would change", planOnly, needPlanner),
		promise("PlanIsWhatUpdateDoes", "Update does what was planned, and is NotSupported where the plan is not InPlace", planAndUpdate, needPlanner, needUpdater),
		promise("UpdateKeepsIdentity", "an update in place keeps token, owner, ProviderID and disks, has the new digest, and is idempotent", updateKeeps, needUpdater),
		promise("RefusedUpdateLeavesAll", "an update that is refused leaves everything as it was", updateRefused, needUpdater),
		promise("UpdateInOtherClusterIsNotFound", "Update with another cluster, or of what never was, is NotFound and has no effect", updateForeign, needUpdater),
	}
}

// targets are what instances are updated to.
func (k *checker) targets() []provider.Desired {
	switch {
	case k.h.Updates != nil:
		return k.h.Updates
	case k.h.OtherConfig != nil:
		return []provider.Desired{k.with(k.machine(), k.h.OtherConfig).Desired}
	}
	k.skipf("the harness has no Updates and no OtherConfig")
	return nil
}

// mustPlan returns the plan; without a Planner an Updater updates in place.
func (k *checker) mustPlan(u provider.UpdateRequest) provider.Plan {
	if !k.has(needPlanner) {
		return provider.Plan{Method: provider.InPlace}
	}
	plan, err := k.plan(u)
	if err != nil {
		k.failf("Plan: got error %v, want a plan", err)
	}
	switch plan.Method {
	case provider.InPlace, provider.Replace, provider.Unsupported, provider.Nothing:
	default:
		k.failf("Plan: got method %q, want InPlace, Replace, Unsupported or Nothing", plan.Method)
	}
	return plan
}

// subject makes a running instance with data.
func (k *checker) subject(p provider.Provider) (provider.CreateRequest, provider.Instance) {
	r := k.machine()
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, r.Token)
	}
	return r, k.again(p, r)
}

func planOnly(k *checker) {
	p := k.client()
	r, i := k.subject(p)
	before, boots := k.count(), k.boots(i.Ref())
	for _, d := range k.targets() {
		u := k.updating(r, i, d)
		first := k.mustPlan(u)
		if again := k.mustPlan(u); again.Method != first.Method {
			k.failf("Plan called twice: got %s and %s", first.Method, again.Method)
		}
		k.wantSame(p, r, i)
	}
	if plan := k.mustPlan(k.updating(r, i, r.Desired)); plan.Method != provider.Nothing {
		k.failf("Plan of what is there already: got %s, want Nothing", plan.Method)
	}
	k.wantSame(p, r, i)
	if now := k.count(); now != before || k.boots(i.Ref()) != boots {
		k.failf("after Plan the backend holds %v, want %v, and %d boots, want %d", now, before, k.boots(i.Ref()), boots)
	}
	if _, err := k.plan(k.updating(r, provider.Instance{Token: k.machine().Token}, r.Desired)); err != nil {
		k.wantClass("Plan of what never was", err, provider.NotFound)
	}
}

func (k *checker) mustUpdate(u provider.UpdateRequest) {
	if _, err := k.done("Update", func() (provider.Progress, error) { return k.update(u) }); err != nil {
		k.failf("Update of %q: got error %v, want it to be done", u.Ref.Token, err)
	}
}

func planAndUpdate(k *checker) {
	p := k.client()
	for _, d := range k.targets() {
		r, i := k.subject(p)
		before := k.count()
		u := k.updating(r, i, d)
		plan := k.mustPlan(u)
		switch plan.Method {
		case provider.InPlace:
			k.mustUpdate(u)
			if got := k.again(p, wanting(r, d)); got.Digest != u.Digest {
				k.failf("Plan says InPlace and Update is done: got digest %q, want %q", got.Digest, u.Digest)
			}
			if len(plan.Lost) == 0 && !k.lacking(needSentinel, "whether disks that are not lost keep their data") {
				k.wantSentinel(i, r.Token, "after an update in place that loses no disk")
			}
			if plan := k.mustPlan(u); plan.Method != provider.Nothing {
				k.failf("Plan of what was updated to: got %s, want Nothing", plan.Method)
			}
		case provider.Replace, provider.Unsupported:
			_, err := k.update(u)
			k.wantClass("Update where the plan says "+string(plan.Method), err, provider.NotSupported)
			k.wantSame(p, r, i)
		case provider.Nothing:
			k.mustUpdate(u)
		}
		if now := k.count(); now != before {
			k.failf("after the plan %s and Update the backend holds %v, want %v", plan.Method, now, before)
		}
		k.destroy(p, r, i.Ref())
	}
}

func updateKeeps(k *checker) {
	p, updated := k.client(), 0
	for _, d := range k.targets() {
		r, i := k.subject(p)
		u := k.updating(r, i, d)
		if k.mustPlan(u).Method != provider.InPlace {
			k.destroy(p, r, i.Ref())
			continue
		}
		if _, err := k.update(u); !k.has(needPlanner) && provider.ClassOf(err) == provider.NotSupported {
			k.destroy(p, r, i.Ref())
			continue
		}
		updated++
		k.mustUpdate(u)
		k.mustUpdate(u)
		r = wanting(r, d)
		got := k.started(p, r, k.again(k.client(), r))
		k.wantTags("after Update", got, r)
		if got.ProviderID != i.ProviderID {
			k.failf("after Update: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
		}
		if got := k.mustCreate(p, r); got.ProviderID != i.ProviderID {
			k.failf("Create with the digest that was updated to: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
		}
		k.wantInstances(1, "after Update")
		k.destroy(p, r, i.Ref())
	}
	if updated == 0 {
		k.skipf("the provider updates none of the targets in place")
	}
}

func updateRefused(k *checker) {
	p, refused := k.client(), 0
	for _, d := range k.targets() {
		r, i := k.subject(p)
		before, boots := k.count(), k.boots(i.Ref())
		if _, err := k.update(k.updating(r, i, d)); err != nil {
			refused++
			k.wantClass("Update that is refused", err, provider.NotSupported)
			k.wantSame(p, r, i)
			if now := k.count(); now != before || k.boots(i.Ref()) != boots {
				k.failf("after an update that was refused the backend holds %v, want %v, and %d boots, want %d", now, before, k.boots(i.Ref()), boots)
			}
			if !k.lacking(needSentinel, "whether the data is there") {
				k.wantSentinel(i, r.Token, "after an update that was refused")
			}
		}
		k.destroy(p, r, i.Ref())
	}
	if refused == 0 {
		k.skipf("the provider refuses none of the targets")
	}
}

func updateForeign(k *checker) {
	p := k.client()
	r, i := k.subject(p)
	for _, d := range k.targets() {
		u := k.updating(r, i, d)
		u.Cluster = k.cluster("b")
		_, err := k.update(u)
		k.wantClass("Update with another cluster", err, provider.NotFound)
		never := k.updating(r, provider.Instance{Token: k.machine().Token}, d)
		_, err = k.update(never)
		k.wantClass("Update of what never was", err, provider.NotFound)
	}
	k.wantSame(p, r, i)
	k.wantInstances(1, "after updates that were refused")
}
