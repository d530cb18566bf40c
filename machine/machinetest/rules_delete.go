// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/machine/provider"
)

func deleteRules() []rule {
	return []rule{
		promise("DeleteIsIdempotent", "Delete may be called again at any time, by anyone, and is Done", deleteTwice),
		promise("DeleteIsIdempotentConcurrently", "many calls of Delete at a time delete one instance, and none fails", deleteConcurrently),
		promise("DeleteLeavesNothingOfRaces", "when Create and Delete of a token run at a time, a Delete after them leaves nothing", deleteRaces),
		promise("DeleteOfUnknownIsDone", "Delete of a token that never was is Done", deleteUnknown),
		promise("DeleteUsesUpUnknown", "Delete uses up a token that never was: a Create that comes late is Conflict and makes nothing", deleteUsesUp, needMemory),
		promise("DeleteByTokenAlone", "Delete works from a token alone, before a ProviderID is known and after", deleteByToken),
		promise("DeleteByProviderID", "Delete works from token and ProviderID, in another process than that of Create", deleteByID),
		promise("DeleteDoneMeansStopped", "an instance whose Delete is Done or says Stopped runs no more", deleteStops, needRunning),
		promise("DestroyLeavesNothing", "Destroy leaves no instance, no disk and no entry behind", destroyAll),
		promise("DeleteInOtherClusterIsNotFound", "Delete with another cluster is NotFound and has no effect", deleteForeign),
		promise("DeleteOfOneLeavesOthers", "Delete reaches no other instance than that of its token", deleteOne),
	}
}

func (k *checker) destroy(p provider.Provider, r provider.CreateRequest, ref provider.Ref) {
	k.mustDelete(p, k.deletion(r, ref, provider.Destroy))
}

func deleteTwice(k *checker) {
	for _, mode := range []provider.Mode{provider.Destroy, provider.Retain} {
		p, r := k.client(), k.machine()
		i := k.running(p, r)
		d := k.deletion(r, i.Ref(), mode)
		k.mustDelete(p, d)
		k.mustDelete(p, d)
		k.mustDelete(k.client(), d)
		k.wantInstances(0, fmt.Sprintf("after 3 times Delete with mode %s", mode))
	}
}

func deleteConcurrently(k *checker) {
	const calls = 8
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	clients := []provider.Provider{p, k.client()}
	errs := each(calls, []int{0, 1, 2, 3, 4, 5, 6, 7}, func(n int) error {
		_, err := k.deleted(clients[n%2], k.deletion(r, i.Ref(), provider.Destroy))
		return err
	})
	for _, err := range errs {
		if provider.ClassOf(err) != provider.Unavailable {
			k.failf("one of %d calls at a time: got error %v, want it to be done", calls, err)
		}
	}
	k.destroy(p, r, i.Ref())
	k.wantCount(Inventory{}, "after Delete")
}

func deleteRaces(k *checker) {
	p, q := k.client(), k.client()
	for _, later := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond} {
		r := k.machine()
		d := k.deletion(r, provider.Ref{Token: r.Token}, provider.Destroy)
		_ = each(8, []int{0, 1, 2, 3, 4, 5, 6, 7}, func(n int) error { // any of them may fail
			if n%2 == 0 {
				_, err := k.create(p, r)
				return err
			}
			if !backoff.Sleep(k.ctx, later) {
				return k.ctx.Err()
			}
			_, err := k.delete(q, d)
			return err
		})
		k.mustDelete(q, d)
		k.wantCount(Inventory{}, "after Create and Delete at a time, and Delete")
	}
}

func deleteUnknown(k *checker) {
	p := k.client()
	for _, mode := range []provider.Mode{provider.Destroy, provider.Retain} {
		r := k.machine()
		progress, err := k.delete(p, k.deletion(r, provider.Ref{Token: r.Token}, mode))
		if err != nil || !progress.Done {
			k.failf("Delete: got %+v, error %v, want Done", progress, err)
		}
		progress, err = k.delete(p, k.deletion(r, provider.Ref{Token: r.Token, ProviderID: "x:///" + r.Token}, mode))
		if err != nil || !progress.Done {
			k.failf("Delete with a ProviderID: got %+v, error %v, want Done", progress, err)
		}
	}
	k.wantNothing("after Delete of what never was")
}

func deleteUsesUp(k *checker) {
	p := k.client()
	for _, mode := range []provider.Mode{provider.Destroy, provider.Retain} {
		r := k.machine()
		k.mustDelete(p, k.deletion(r, provider.Ref{Token: r.Token}, mode))
		_, err := k.create(k.client(), r)
		k.wantClass("Create after Delete with "+string(mode), err, provider.Conflict)
		k.wantNothing("after Delete and Create")
	}
}

func deleteByToken(k *checker) {
	p, early, late := k.client(), k.machine(), k.machine()
	k.mustCreate(p, early) // it may be Pending
	k.destroy(k.client(), early, provider.Ref{Token: early.Token})
	k.wantCount(Inventory{}, "after Delete of an instance that was just made")
	k.running(p, late)
	k.destroy(k.client(), late, provider.Ref{Token: late.Token})
	k.wantCount(Inventory{}, "after Delete of a running instance")
}

func deleteByID(k *checker) {
	r := k.machine()
	i := k.running(k.client(), r)
	k.destroy(k.client(), r, provider.Ref{Token: r.Token, ProviderID: i.ProviderID})
	k.wantCount(Inventory{}, "after Delete")
}

// deleteStops looks at the backend whenever Delete has said something.
func deleteStops(k *checker) {
	for _, mode := range []provider.Mode{provider.Destroy, provider.Retain} {
		p, r := k.client(), k.machine()
		i := k.running(p, r)
		k.wantRunning(i.Ref(), true)
		d := k.deletion(r, i.Ref(), mode)
		done := k.poll(func() bool {
			progress, err := k.delete(p, d)
			if err != nil {
				k.failf("Delete: %v", err)
			}
			if progress.Done || progress.Stopped {
				k.wantRunning(i.Ref(), false)
			}
			return progress.Done
		})
		if !done {
			k.failf("Delete with mode %s is not done after %v", mode, k.wait())
		}
	}
}

func destroyAll(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, "to be destroyed")
	}
	k.destroy(p, r, i.Ref())
	k.wantNothing("when Delete is done")
	k.gone(k.client(), r, i)
}

// gone checks that nothing is left of an instance.
func (k *checker) gone(p provider.Provider, r provider.CreateRequest, i provider.Instance) {
	if !k.lacking(needGet, "Get of what was destroyed") {
		_, err := k.get(p, i.Ref())
		k.wantClass("Get of what was destroyed", err, provider.NotFound)
	}
	if !k.lacking(needList, "List of what was destroyed") {
		k.unlisted(p, r)
	}
	if !k.lacking(needSentinel, "whether the data is gone") {
		k.wantSentinel(i, "", "after Destroy")
	}
}

func deleteForeign(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	before := k.count()
	for _, cluster := range []string{k.cluster("b"), ""} {
		for _, ref := range []provider.Ref{i.Ref(), {Token: i.Token}} {
			d := k.deletion(r, ref, provider.Destroy)
			d.Cluster = cluster
			_, err := k.delete(p, d)
			k.wantClass(fmt.Sprintf("Delete with cluster %q", cluster), err, provider.NotFound)
		}
	}
	k.wantSame(p, r, i)
	if got := k.count(); got != before {
		k.failf("the backend holds %v, want %v", got, before)
	}
}

func deleteOne(k *checker) {
	p, r, next := k.client(), k.machine(), k.machine()
	// Tokens of one machine that begin alike.
	next.Owner = r.Owner
	next.Owner.Incarnation = 11
	next = k.incarnation(next.Owner)
	i, other := k.running(p, r), k.running(p, next)
	k.destroy(p, r, provider.Ref{Token: i.Token})
	k.wantSame(p, next, other)
	k.wantInstances(1, "after Delete of one of two")
}
