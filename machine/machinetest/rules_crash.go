// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"github.com/belayproject/belay/machine/provider"
)

// maxPoints is a limit for harnesses that never come to the end of a call.
const maxPoints = 100

func crashRules() []rule {
	return []rule{
		promise("CreateSurvivesCrash", "a Create whose process died at any point, made again by another one, makes one instance", crashCreate, needCrash),
		promise("DeleteSurvivesCrash", "a Delete whose process died at any point can be finished by another one, and leaves nothing", crashDelete, needCrash),
		promise("DeleteAfterCrashedCreate", "Delete finds what a Create left whose process died at any point", crashAndDelete, needCrash),
		promise("UpdateSurvivesCrash", "an Update whose process died at any point can be finished by another one", crashUpdate, needCrash, needUpdater),
		promise("AdoptSurvivesCrash", "an Adopt whose process died at any point, made again by another one, makes one instance", crashAdopt, needCrash, needAdopter),
	}
}

// eachPoint makes a call that dies at each of its points. begin returns the call, and what checks that another process can go on.
func (k *checker) eachPoint(begin func() (Call, func())) {
	for point := range maxPoints {
		call, goOn := begin()
		ctx, cancel := k.limited()
		died, err := k.h.Crash(ctx, call, point)
		cancel()
		if err != nil {
			k.failf("crash at point %d: %v", point, err)
		}
		goOn()
		if died {
			continue
		}
		if point == 0 {
			k.failf("the harness has let no process die")
		}
		return
	}
	k.failf("the harness lets processes die at more than %d points of a call", maxPoints)
}

func crashCreate(k *checker) {
	k.eachPoint(func() (Call, func()) {
		r := k.machine()
		k.remember(r)
		return Call{Create: &r}, func() {
			p := k.client()
			i := k.running(p, r)
			k.wantInstances(1, "after a crash and Create")
			k.wantTags("after a crash", k.again(p, r), r)
			k.destroy(p, r, i.Ref())
			k.wantCount(Inventory{}, "after a crash, Create and Delete")
		}
	})
}

func crashDelete(k *checker) {
	for _, mode := range []provider.Mode{provider.Destroy, provider.Retain} {
		k.eachPoint(func() (Call, func()) {
			p := k.client()
			r, i := k.subject(p)
			d := k.deletion(r, i.Ref(), mode)
			return Call{Delete: &d}, func() {
				fresh := k.client()
				k.mustDelete(fresh, d)
				k.wantInstances(0, "after a crash and Delete")
				if mode == provider.Retain && k.has(needSentinel) {
					k.wantSentinel(i, r.Token, "after a crash and Delete with Retain")
				}
				k.destroy(fresh, r, i.Ref())
				k.wantCount(Inventory{}, "after a crash and Delete with "+string(mode))
			}
		})
	}
}

func crashAndDelete(k *checker) {
	k.eachPoint(func() (Call, func()) {
		r := k.machine()
		return Call{Create: &r}, func() {
			k.destroy(k.client(), r, provider.Ref{Token: r.Token})
			k.wantCount(Inventory{}, "after a Create that crashed and Delete")
		}
	})
}

func crashUpdate(k *checker) {
	tried := 0
	for _, d := range k.targets() {
		p := k.client()
		r, i := k.subject(p)
		inPlace := k.mustPlan(k.updating(r, i, d)).Method == provider.InPlace
		if inPlace && !k.has(needPlanner) {
			_, err := k.update(k.updating(r, i, d))
			inPlace = provider.ClassOf(err) != provider.NotSupported
		}
		k.destroy(p, r, i.Ref())
		if !inPlace {
			continue
		}
		tried++
		k.crashUpdateTo(d)
	}
	if tried == 0 {
		k.skipf("the provider updates none of the targets in place")
	}
}

func (k *checker) crashUpdateTo(d provider.Desired) {
	k.eachPoint(func() (Call, func()) {
		p := k.client()
		r, i := k.subject(p)
		u := k.updating(r, i, d)
		return Call{Update: &u}, func() {
			k.mustUpdate(u)
			r = wanting(r, d)
			if got := k.again(k.client(), r); got.ProviderID != i.ProviderID || got.Digest != r.Digest {
				k.failf("after a crash and Update: got ProviderID %q and digest %q, want %q and %q", got.ProviderID, got.Digest, i.ProviderID, r.Digest)
			}
			k.destroy(p, r, i.Ref())
		}
	})
}

func crashAdopt(k *checker) {
	k.eachPoint(func() (Call, func()) {
		p, r := k.client(), k.machine()
		i, _ := k.retained(p, r)
		k.needsDisks()
		a := k.successor(r, i.Ref())
		k.remember(a.As)
		return Call{Adopt: &a}, func() {
			fresh := k.client()
			adopted := k.started(fresh, a.As, k.mustAdopt(a))
			k.wantInstances(1, "after a crash and Adopt")
			if k.has(needSentinel) {
				k.wantSentinel(adopted, r.Token, "after a crash and Adopt")
			}
			k.destroy(fresh, a.As, adopted.Ref())
			k.wantCount(Inventory{}, "after a crash, Adopt and Delete")
		}
	})
}
