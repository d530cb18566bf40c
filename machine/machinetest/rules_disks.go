// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func diskRules() []rule {
	return []rule{
		promise("RetainKeepsDisks", "Retain keeps disks and their data, and says which", retainKeeps, needSentinel),
		promise("RetainedKeepsUntil", "an instance that is retained says until when, as it was asked for", retainedUntil, needGet),
		promise("RetainIsTheDefault", "Delete without a mode, or with one that is none, keeps the disks", retainDefault, needSentinel),
		promise("RetainedIsNotRevived", "Create with the token of a retained instance starts nothing", retainedStays),
		promise("DestroyAfterRetain", "what was retained can be destroyed, and then nothing is left", destroyRetained),
		promise("AdoptBringsDisksBack", "Adopt starts a retained instance, with its data, under a new token and owner", adoptRetained, needAdopter, needSentinel),
		promise("AdoptIsIdempotent", "Adopt is idempotent on the new token, and Conflict with another digest", adoptTwice, needAdopter),
		promise("AdoptGivesDisksToOne", "of many calls of Adopt from one instance at a time one token gets its disks", adoptByMany, needAdopter),
		promise("AdoptUsesUpTheOldToken", "the token that was adopted from makes nothing any more", adoptUsesUp, needAdopter, needMemory),
		promise("AdoptOfUnknownIsNotFound", "Adopt from what never was is NotFound and has no effect", adoptUnknown, needAdopter),
		promise("AdoptOfAliveMovesTags", "Adopt of an instance that is alive changes token and owner alone", adoptAlive, needAdopter),
	}
}

func (k *checker) writeSentinel(i provider.Instance, text string) {
	if err := k.h.WriteSentinel(k.ctx, i, []byte(text)); err != nil {
		k.failf("write to the disks of %q: %v", i.Token, err)
	}
}

func (k *checker) wantSentinel(i provider.Instance, want, when string) {
	got, err := k.h.ReadSentinel(k.ctx, i)
	if err != nil {
		k.failf("%s: read from the disks of %q: %v", when, i.Token, err)
	}
	if string(got) != want {
		k.failf("%s the disks of %q hold %q, want %q", when, i.Token, got, want)
	}
}

// retained makes an instance with data and retains it.
func (k *checker) retained(p provider.Provider, r provider.CreateRequest) (provider.Instance, provider.Progress) {
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, r.Token)
	}
	progress := k.mustDelete(p, k.deletion(r, i.Ref(), provider.Retain))
	return i, progress
}

func retainKeeps(k *checker) {
	p, r := k.client(), k.machine()
	i, progress := k.retained(p, r)
	got := k.count()
	if got.Instances != 0 || got.Disks == 0 {
		k.failf("after Retain the backend holds %d instances and %d disks, want none and some", got.Instances, got.Disks)
	}
	if len(progress.Retained) == 0 {
		k.failf("Delete with Retain is done: got no disks in Progress.Retained, the backend holds %d", got.Disks)
	}
	k.wantSentinel(i, r.Token, "after Retain")
	k.mustDelete(k.client(), k.deletion(r, i.Ref(), provider.Retain))
	k.wantSentinel(i, r.Token, "after Retain was called again")
}

func retainedUntil(k *checker) {
	p, until := k.client(), time.Date(2030, time.February, 3, 4, 5, 6, 0, time.UTC)
	for _, want := range []time.Time{{}, until} {
		r := k.machine()
		i := k.running(p, r)
		d := k.deletion(r, i.Ref(), provider.Retain)
		d.Until = want
		k.mustDelete(p, d)
		k.needsDisks()
		if got := k.mustGet(k.client(), i.Ref()); !got.Until.Equal(want) {
			k.failf("Get of an instance that was retained until %v: got Until %v", want, got.Until)
		}
		if k.has(needList) {
			if got := k.listed(k.client(), r, provider.Retained); !got.Until.Equal(want) {
				k.failf("List of an instance that was retained until %v: got Until %v", want, got.Until)
			}
		}
	}
}

func retainDefault(k *checker) {
	p := k.client()
	for _, mode := range []provider.Mode{"", "destroy", "Shred"} {
		r := k.machine()
		i := k.running(p, r)
		k.writeSentinel(i, r.Token)
		_, err := k.deleted(p, k.deletion(r, i.Ref(), mode))
		if err != nil && mode == "" {
			k.failf("Delete without a mode: got error %v, want it to be done", err)
		}
		k.wantSentinel(i, r.Token, fmt.Sprintf("after Delete with mode %q", mode))
	}
}

func retainedStays(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	k.needsDisks()
	before := k.count()
	got, err := k.create(k.client(), r)
	if provider.ClassOf(err) != provider.Conflict && (err != nil || got.State != provider.Retained) {
		k.failf("Create with the token of a retained instance: got state %q, error %v, want Retained or Conflict", got.State, err)
	}
	if now := k.count(); now != before {
		k.failf("after Create with the token of a retained instance the backend holds %v, want %v", now, before)
	}
	if !k.lacking(needRunning, "whether it runs again") {
		k.wantRunning(i.Ref(), false)
	}
}

func destroyRetained(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	fresh := k.client()
	k.destroy(fresh, r, provider.Ref{Token: r.Token})
	k.wantNothing("when Destroy after Retain is done")
	k.gone(fresh, r, i)
	r = k.machine() // on second thoughts
	i = k.running(p, r)
	if _, err := k.delete(p, k.deletion(r, i.Ref(), provider.Retain)); err != nil {
		k.failf("Delete with Retain: %v", err)
	}
	k.destroy(fresh, r, i.Ref())
	k.wantNothing("when Destroy after Retain was begun is done")
}

// successor asks for the next incarnation of a machine from the disks of the last one.
func (k *checker) successor(r provider.CreateRequest, from provider.Ref) provider.AdoptRequest {
	o := r.Owner
	o.Incarnation++
	return provider.AdoptRequest{From: from, As: k.incarnation(o)}
}

func (k *checker) mustAdopt(r provider.AdoptRequest) provider.Instance {
	i, err := k.adopt(r)
	if err != nil {
		k.failf("Adopt from %q as %q: got error %v, want an instance", r.From.Token, r.As.Token, err)
	}
	if i.Token != r.As.Token {
		k.failf("Adopt: got an instance with token %q, want %q", i.Token, r.As.Token)
	}
	return i
}

func adoptRetained(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	a := k.successor(r, i.Ref())
	a.As.Owner.Name = "another-name"
	adopted := k.started(p, a.As, k.mustAdopt(a))
	if provider.TokenOf(adopted.ProviderID) != a.As.Token || adopted.ProviderID == i.ProviderID {
		k.failf("Adopt: got ProviderID %q, want a new one that ends in %q", adopted.ProviderID, a.As.Token)
	}
	k.wantTags("after Adopt", k.again(k.client(), a.As), a.As)
	k.wantSentinel(adopted, r.Token, "after Adopt")
	k.wantInstances(1, "after Adopt")
	if !k.lacking(needList, "whether the old entry is gone") {
		k.unlisted(p, r)
	}
	k.destroy(p, a.As, adopted.Ref())
	k.wantNothing("when what was adopted is destroyed")
}

func adoptTwice(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	k.needsDisks()
	a := k.successor(r, i.Ref())
	k.mustAdopt(a)
	adopted := k.started(p, a.As, k.mustAdopt(a))
	if got := k.mustAdopt(a); got.ProviderID != adopted.ProviderID {
		k.failf("Adopt again: got ProviderID %q, want %q", got.ProviderID, adopted.ProviderID)
	}
	if got := k.mustCreate(k.client(), a.As); got.ProviderID != adopted.ProviderID {
		k.failf("Create with the new token: got ProviderID %q, want %q", got.ProviderID, adopted.ProviderID)
	}
	k.wantInstances(1, "after 3 times Adopt")
	if k.lacking(needOther, "Adopt with another digest") {
		return
	}
	other := a
	other.As = k.with(a.As, k.h.OtherConfig)
	_, err := k.adopt(other)
	k.wantClass("Adopt with a known token and another digest", err, provider.Conflict)
	k.wantSame(p, a.As, adopted)
}

func adoptByMany(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	k.needsDisks()
	before := k.count()
	var asked []provider.AdoptRequest
	for range 4 {
		a := provider.AdoptRequest{From: i.Ref(), As: k.machine()}
		asked = append(asked, a, a)
	}
	_ = each(len(asked), asked, func(a provider.AdoptRequest) error { // all but one token fail, in one way or another
		_, err := k.adopt(a)
		return err
	})
	var winners []provider.AdoptRequest
	for n := 0; n < len(asked); n += 2 {
		if _, err := k.adopt(asked[n]); err == nil {
			winners = append(winners, asked[n])
		}
	}
	if len(winners) != 1 {
		k.failf("Adopt from one instance as 4 tokens: %d of them got one, want 1", len(winners))
	}
	adopted := k.started(p, winners[0].As, k.mustAdopt(winners[0]))
	if got := k.count(); got.Instances != 1 || got.Disks != before.Disks {
		k.failf("after Adopt as 4 tokens the backend holds %d instances and %d disks, want 1 and %d", got.Instances, got.Disks, before.Disks)
	}
	if !k.lacking(needSentinel, "whether the data is there") {
		k.wantSentinel(adopted, r.Token, "after Adopt as 4 tokens")
	}
}

func adoptUsesUp(k *checker) {
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	k.needsDisks()
	a := k.successor(r, i.Ref())
	adopted := k.started(p, a.As, k.mustAdopt(a))
	_, err := k.create(k.client(), r)
	k.wantClass("Create with the token that was adopted from", err, provider.Conflict)
	k.wantInstances(1, "after Create with the token that was adopted from")
	k.destroy(p, r, i.Ref()) // late: it must not reach what has been adopted
	k.wantSame(p, a.As, adopted)
	third := k.machine()
	_, err = k.adopt(provider.AdoptRequest{From: i.Ref(), As: third})
	if err == nil {
		k.failf("Adopt from what another token has adopted: got no error, want one")
	}
	k.wantInstances(1, "after a second Adopt")
}

func adoptUnknown(k *checker) {
	from, to := k.machine(), k.machine()
	_, err := k.adopt(provider.AdoptRequest{From: provider.Ref{Token: from.Token}, As: to})
	k.wantClass("Adopt from an unknown token", err, provider.NotFound)
	k.wantNothing("after Adopt from an unknown token")
}

func adoptAlive(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, r.Token)
	}
	boots := k.boots(i.Ref())
	before := k.count()
	a := k.successor(r, i.Ref())
	_, err := k.adopt(a)
	if provider.ClassOf(err) == provider.NotSupported {
		k.wantSame(p, r, i)
		k.skipf("the provider does not adopt what is alive: %v", err)
	}
	if err != nil {
		k.failf("Adopt of a running instance: got error %v, want the instance", err)
	}
	got := k.again(k.client(), a.As)
	if got.State != provider.Running || got.Owner != a.As.Owner {
		k.failf("Adopt of a running instance: got state %q and owner %+v, want Running and %+v", got.State, got.Owner, a.As.Owner)
	}
	if now := k.count(); now != before {
		k.failf("after Adopt of a running instance the backend holds %v, want %v", now, before)
	}
	if !k.lacking(needSentinel, "whether the data is there") {
		k.wantSentinel(got, r.Token, "after Adopt of a running instance")
	}
	if !k.lacking(needBoots, "whether it was started again") && k.boots(got.Ref()) != boots {
		k.failf("Adopt of a running instance has started it again")
	}
}
