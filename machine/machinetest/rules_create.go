// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func createRules() []rule {
	return []rule{
		promise("CreateIsIdempotent", "a token makes one instance, which Create returns whatever state it is in and whoever asks", createTwice),
		promise("CreateIsIdempotentConcurrently", "a token makes one instance, however many calls run at a time", createConcurrently),
		promise("CreateSurvivesCancel", "a Create that is cut off, before or during the call, and made again makes one instance", createCancelled),
		promise("OtherDigestIsConflict", "Create with a known token and another digest is Conflict and has no effect", otherDigest, needOther),
		promise("OtherZoneIsConflict", "a token makes one instance in all zones together", otherZone, needZones),
		promise("UsedUpTokenIsConflict", "Create with a token whose instance was destroyed is Conflict and has no effect", usedUp, needMemory),
		promise("BadTokenIsRefused", "a token that is none is refused by Create and reaches nothing in any call", badToken),
		promise("ProviderIDEndsInToken", "a running instance has a ProviderID, which stays, and whose last path segment is the token", idHasToken),
		promise("ProviderIDIsNeverReused", "a ProviderID is never given twice, over machines and over incarnations of one", idIsUnique),
	}
}

func createTwice(k *checker) {
	p, r := k.client(), k.machine()
	k.mustCreate(p, r)
	k.mustCreate(p, r)
	i := k.running(p, r)
	other := k.client()
	if got := k.running(other, r); got.ProviderID != i.ProviderID {
		k.failf("Create by another client: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
	}
	if got := k.mustCreate(other, r); got.ProviderID != i.ProviderID {
		k.failf("Create of a running instance: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
	}
	k.wantInstances(1, "after 4 calls of Create with one token")
}

func createConcurrently(k *checker) {
	const calls = 16
	clients := []provider.Provider{k.client(), k.client(), k.client(), k.client()}
	r := k.machine()
	var (
		mu  sync.Mutex
		ids []string
	)
	errs := each(calls, make([]struct{}, calls), func(struct{}) error {
		mu.Lock()
		p := clients[len(ids)%len(clients)]
		ids = append(ids, "")
		n := len(ids) - 1
		mu.Unlock()
		i, err := k.create(p, r)
		mu.Lock()
		defer mu.Unlock()
		ids[n] = i.ProviderID
		return err
	})
	for _, err := range errs {
		if c := provider.ClassOf(err); c != provider.Unavailable && c != provider.RateLimited {
			k.failf("one of %d calls at a time: got error %v, want the instance", calls, err)
		}
	}
	if len(errs) == calls {
		k.failf("all of %d calls at a time failed: %v", calls, errs[0])
	}
	i := k.running(clients[0], r)
	for _, id := range ids {
		if id != "" && id != i.ProviderID {
			k.failf("one of %d calls at a time: got ProviderID %q, want %q", calls, id, i.ProviderID)
		}
	}
	k.wantInstances(1, "after 16 calls of Create at a time")
}

func createCancelled(k *checker) {
	p := k.client()
	delays := []time.Duration{-1, 0, 200 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}
	for n, delay := range delays {
		r := k.machine()
		ctx, cancel := context.WithTimeout(k.ctx, max(delay, 0))
		if delay < 0 {
			cancel()
		}
		_, err := k.createIn(ctx, p, r)
		cancel()
		if err != nil && !unsure(err) {
			k.failf("Create whose ctx ended after %v: got class %q (error: %v), want Unavailable or none", delay, provider.ClassOf(err), err)
		}
		k.running(k.client(), r)
		k.wantInstances(n+1, "after Create was cut off and made again")
	}
}

func otherDigest(k *checker) {
	p, r := k.client(), k.machine()
	other := k.with(r, k.h.OtherConfig)
	i := k.running(p, r)
	before := k.count()
	for _, p := range []provider.Provider{p, k.client()} {
		_, err := k.create(p, other)
		k.wantClass("Create with another digest", err, provider.Conflict)
	}
	k.wantSame(p, r, i)
	if got := k.count(); got != before {
		k.failf("after the conflict the backend holds %v, want %v", got, before)
	}
}

// wantSame checks that an instance is as it was.
func (k *checker) wantSame(p provider.Provider, r provider.CreateRequest, was provider.Instance) {
	now := k.again(p, r)
	if now.ProviderID != was.ProviderID || now.State != was.State || now.Digest != was.Digest || now.Owner != was.Owner ||
		!slices.Equal(now.Disks, was.Disks) {
		k.failf("the instance is %+v, want it as it was: %+v", now, was)
	}
	if k.lacking(needRunning, "whether it still runs") {
		return
	}
	k.wantRunning(now.Ref(), was.State == provider.Running)
}

func (k *checker) wantRunning(ref provider.Ref, want bool) {
	got, err := k.h.Running(k.ctx, ref)
	if err != nil {
		k.failf("running %q: %v", ref.Token, err)
	}
	if got != want {
		k.failf("the backend says of instance %q that it runs: %t, want %t", ref.Token, got, want)
	}
}

func otherZone(k *checker) {
	p, r := k.client(), k.machine()
	r = k.with(r, k.h.Zones[0])
	k.running(p, r)
	for _, zone := range k.h.Zones[1:] {
		_, err := k.create(p, k.with(r, zone))
		k.wantClass("Create in another zone", err, provider.Conflict)
		other := k.with(k.machine(), zone)
		k.running(p, other)
		k.mustDelete(k.client(), k.deletion(other, provider.Ref{Token: other.Token}, provider.Destroy))
	}
	k.wantInstances(1, "after Create in several zones")
}

func usedUp(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	k.mustDelete(p, k.deletion(r, i.Ref(), provider.Destroy))
	for _, p := range []provider.Provider{p, k.client()} {
		_, err := k.create(p, r)
		k.wantClass("Create with a token that was used up", err, provider.Conflict)
	}
	k.wantNothing("after Create with a token that was used up")
}

func badToken(k *checker) {
	p := k.client()
	witness := k.machine()
	i := k.running(p, witness)
	for _, token := range []string{"", ".", "..", "../" + witness.Token, "A-1", "a b", "a/b", "a\x00b", "-a", "a-", "ü", string(make([]byte, 64)),
		"a123456789b123456789c123456789d123456789e123456789f123456789g123"} {
		r := k.machine()
		r.Token = token
		if _, err := k.create(p, r); err == nil {
			k.failf("Create with token %.70q: got no error, want one", token)
		}
		if got, err := k.get(p, provider.Ref{Token: token}); err == nil && k.has(needGet) {
			k.failf("Get of token %.70q: got instance %q, want an error", token, got.Token)
		}
		_, _ = k.delete(p, k.deletion(r, provider.Ref{Token: token}, provider.Destroy)) // done or refused: what counts is what is left
	}
	k.wantSame(p, witness, i)
	k.wantInstances(1, "after calls with bad tokens")
}

func idHasToken(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	if got := provider.TokenOf(i.ProviderID); got != r.Token {
		k.failf("ProviderID %q ends in %q, want %q", i.ProviderID, got, r.Token)
	}
	if got := k.again(k.client(), r); got.ProviderID != i.ProviderID {
		k.failf("later the ProviderID is %q, want %q", got.ProviderID, i.ProviderID)
	}
}

func idIsUnique(k *checker) {
	p, seen := k.client(), map[string]string{}
	see := func(i provider.Instance) {
		if was, known := seen[i.ProviderID]; known {
			k.failf("instance %q got ProviderID %q, which %q had", i.Token, i.ProviderID, was)
		}
		seen[i.ProviderID] = i.Token
	}
	see(k.running(p, k.machine()))
	r := k.machine()
	for n := range int64(3) {
		r.Owner.Incarnation = n + 1
		r = k.incarnation(r.Owner)
		i := k.running(p, r)
		see(i)
		k.mustDelete(p, k.deletion(r, i.Ref(), provider.Destroy))
	}
}
