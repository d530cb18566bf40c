// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func faultRules() []rule {
	refusal := func(f Fault, c provider.Class) func(k *checker) {
		return func(k *checker) { k.refusal(f, c) }
	}
	return []rule{
		promise("CreateSurvivesLostReply", "a Create whose reply was lost, made again, makes one instance", lostCreate, needInject),
		promise("DeleteSurvivesLostReply", "a Delete whose reply was lost, made again, is Done", lostDelete, needInject),
		promise("AdoptSurvivesLostReply", "an Adopt whose reply was lost, made again, makes one instance", lostAdopt, needInject, needAdopter),
		promise("StaleListIsNotNotFound", "Get does not say NotFound of an instance that a list does not show yet", staleGet, needInject, needGet),
		promise("StaleListMakesNoSecond", "Create returns the instance of a token that a list does not show yet", staleCreate, needInject),
		promise("StaleListHidesNothingFromDelete", "Delete is not Done while an instance is there that a list does not show yet", staleDelete, needInject),
		promise("RateLimitIsRateLimited", "a call that is one too many is RateLimited, and has no effect", refusal(RateLimit, provider.RateLimited), needInject),
		promise("RateLimitSaysAfter", "RateLimited says when to call again, if the backend does", rateLimitAfter, needInject),
		promise("OutageIsUnavailable", "a backend that can't be reached is Unavailable: nothing is NotFound or Done for it", refusal(Unavailable, provider.Unavailable), needInject),
		promise("RefusedCredentialsAreUnauthorized", "credentials that are refused are Unauthorized: nothing is NotFound or Done for it",
			refusal(Unauthorized, provider.Unauthorized), needInject),
		promise("NoCapacityIsStockout", "Create without capacity is Stockout and leaves nothing; other calls work", stockout, needInject),
		promise("NoCallWaits", "no call waits for an instance to start, and one that has not started yet is Pending and can be deleted", slowStart, needInject),
		promise("CallsEndWithTheirCtx", "a call whose ctx has ended returns within a second", endedCtx),
		promise("HangingCallsEndWithTheirCtx", "a call whose backend does not answer returns within a second of the end of its ctx", hanging, needInject),
	}
}

func lostCreate(k *checker) {
	p, r := k.client(), k.machine()
	end := k.inject(LostReply)
	_, err := k.create(p, r)
	if err != nil && !unsure(err) {
		k.failf("Create whose reply was lost: got error %v, want Unavailable or Internal", err)
	}
	end()
	fresh := k.client()
	i := k.running(fresh, r)
	k.wantInstances(1, "after a lost reply and Create")
	k.destroy(fresh, r, i.Ref())
	k.wantCount(Inventory{}, "after a lost reply, Create and Delete")
}

func lostDelete(k *checker) {
	k.possible(LostReply)
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	d := k.deletion(r, i.Ref(), provider.Destroy)
	end := k.inject(LostReply)
	if _, err := k.delete(p, d); err != nil && !unsure(err) {
		k.failf("Delete whose reply was lost: got error %v, want Unavailable or Internal", err)
	}
	end()
	k.mustDelete(p, d)
	k.wantCount(Inventory{}, "after a lost reply and Delete")
}

func lostAdopt(k *checker) {
	k.possible(LostReply)
	p, r := k.client(), k.machine()
	i, _ := k.retained(p, r)
	k.needsDisks()
	a := k.successor(r, i.Ref())
	end := k.inject(LostReply)
	if _, err := k.adopt(a); err != nil && !unsure(err) {
		k.failf("Adopt whose reply was lost: got error %v, want Unavailable or Internal", err)
	}
	end()
	adopted := k.started(p, a.As, k.mustAdopt(a))
	k.wantInstances(1, "after a lost reply and Adopt")
	if k.has(needSentinel) {
		k.wantSentinel(adopted, r.Token, "after a lost reply and Adopt")
	}
}

func staleGet(k *checker) {
	p, r := k.client(), k.machine()
	end := k.inject(StaleList)
	i := k.mustCreate(p, r)
	for _, p := range []provider.Provider{p, k.client()} {
		for _, ref := range []provider.Ref{{Token: r.Token}, i.Ref()} {
			if _, err := k.get(p, ref); err != nil {
				k.wantClass("Get of an instance that the list does not show", err, provider.Unavailable)
			}
		}
	}
	end()
	k.running(p, r)
}

func staleCreate(k *checker) {
	p, r := k.client(), k.machine()
	end := k.inject(StaleList)
	k.mustCreate(p, r)
	for _, p := range []provider.Provider{p, k.client()} {
		if _, err := k.create(p, r); err != nil {
			k.wantClass("Create with a token whose instance the list does not show", err, provider.Unavailable)
		}
	}
	end()
	k.running(p, r)
	k.wantInstances(1, "after Create while the list was behind")
}

func staleDelete(k *checker) {
	p, r := k.client(), k.machine()
	end := k.inject(StaleList)
	i := k.mustCreate(p, r)
	fresh := k.client()
	for _, ref := range []provider.Ref{i.Ref(), {Token: r.Token}} {
		progress, err := k.delete(fresh, k.deletion(r, ref, provider.Destroy))
		if err != nil {
			k.wantClass("Delete of an instance that the list does not show", err, provider.Unavailable)
		}
		if progress.Done && k.count() != (Inventory{}) {
			k.failf("Delete of an instance that the list does not show is Done, and the backend holds %v", k.count())
		}
	}
	end()
	k.mustDelete(p, k.deletion(r, i.Ref(), provider.Destroy))
	k.wantCount(Inventory{}, "after Delete while the list was behind")
}

// refusal checks the class of all calls during a fault that keeps them from having an effect.
func (k *checker) refusal(f Fault, want provider.Class) {
	k.possible(f)
	p, there, never := k.client(), k.machine(), k.machine()
	i := k.running(p, there)
	before := k.count()
	end := k.inject(f)
	_, err := k.create(p, never)
	k.wantClass("Create", err, want)
	progress, err := k.delete(p, k.deletion(there, i.Ref(), provider.Destroy))
	k.wantClass("Delete", err, want)
	if progress.Done || progress.Stopped {
		k.failf("Delete during %s: got %+v, want neither Done nor Stopped", f, progress)
	}
	if k.has(needGet) {
		if got, err := k.get(p, i.Ref()); err != nil || got.ProviderID != i.ProviderID { // it may be known all the same
			k.wantClass("Get", err, want)
		}
		_, err = k.get(p, provider.Ref{Token: never.Token})
		k.wantClass("Get of what was not made", err, want)
	}
	if k.has(needList) {
		if all, err := k.list(p, there.Owner.Cluster); err != nil || len(all) != 1 {
			k.wantClass("List", err, want)
		}
	}
	if k.has(needUpdater) && k.has(needOther) {
		_, err = k.update(k.updating(there, i, k.with(there, k.h.OtherConfig).Desired))
		if c := provider.ClassOf(err); c != provider.NotSupported { // that can be said without asking
			k.wantClass("Update", err, want)
		}
	}
	end()
	if now := k.count(); now != before {
		k.failf("after %s the backend holds %v, want %v", f, now, before)
	}
	fresh := k.client()
	k.wantSame(fresh, there, i)
	k.running(fresh, never)
}

func rateLimitAfter(k *checker) {
	p, r := k.client(), k.machine()
	end := k.inject(RateLimitAfter)
	_, err := k.create(p, r)
	end()
	k.wantClass("Create", err, provider.RateLimited)
	if after := provider.AfterOf(err); after < time.Second || after > 8*time.Second {
		k.failf("Create where the backend says to wait for 7 seconds: got After %v (error: %v)", after, err)
	}
}

func stockout(k *checker) {
	k.possible(Stockout)
	p, there, never := k.client(), k.machine(), k.machine()
	i := k.running(p, there)
	end := k.inject(Stockout)
	_, err := k.create(p, never)
	k.wantClass("Create", err, provider.Stockout)
	k.wantInstances(1, "after Create without capacity")
	if got, err := k.create(p, there); err != nil || got.ProviderID != i.ProviderID {
		k.failf("Create with a known token without capacity: got ProviderID %q, error %v, want %q", got.ProviderID, err, i.ProviderID)
	}
	if k.has(needGet) {
		k.mustGet(p, i.Ref())
		_, err = k.get(p, provider.Ref{Token: never.Token})
		k.wantClass("Get of what was not made", err, provider.NotFound)
	}
	k.destroy(p, there, i.Ref())
	end()
	k.running(p, never) // the token was not used up
}

// waits is how long a call may take that has nothing to wait for.
const waits = 10 * time.Second

func slowStart(k *checker) {
	p, r, never := k.client(), k.machine(), k.machine()
	end := k.inject(SlowStart)
	for range 2 {
		began := time.Now()
		i := k.mustCreate(p, r)
		if took := time.Since(began); took > waits {
			k.failf("Create took %v, want less than %v", took, waits)
		}
		if i.State != provider.Pending {
			k.failf("Create of an instance that does not start yet: got state %q, want Pending", i.State)
		}
	}
	if k.has(needGet) && k.mustGet(p, provider.Ref{Token: r.Token}).State != provider.Pending {
		k.failf("Get of an instance that does not start yet: got another state than Pending")
	}
	if k.has(needList) {
		k.listed(p, r, provider.Pending)
	}
	k.mustCreate(p, never)
	k.destroy(k.client(), never, provider.Ref{Token: never.Token})
	end()
	k.running(p, r)
	k.wantInstances(1, "after one of two instances was deleted that had not started")
}

// everyCall returns each call that the provider has.
func (k *checker) everyCall(p provider.Provider, r provider.CreateRequest, i provider.Instance) map[string]func(ctx context.Context) error {
	never := k.machine()
	k.remember(never)
	d := k.deletion(never, provider.Ref{Token: never.Token}, provider.Destroy)
	u := k.updating(r, i, r.Desired)
	calls := map[string]func(ctx context.Context) error{
		"Create": func(ctx context.Context) error { return Call{Create: &never}.Do(ctx, p) },
		"Get":    func(ctx context.Context) error { _, err := p.Get(ctx, i.Ref()); return err },
		"List": func(ctx context.Context) error {
			_, err := p.List(ctx, provider.Scope{Cluster: r.Owner.Cluster})
			return err
		},
		"Delete": func(ctx context.Context) error { return Call{Delete: &d}.Do(ctx, p) },
	}
	if k.has(needUpdater) {
		calls["Update"] = func(ctx context.Context) error { _, err := k.can.Updater.Update(ctx, u); return err }
	}
	if k.has(needPlanner) {
		calls["Plan"] = func(ctx context.Context) error { _, err := k.can.Planner.Plan(ctx, u); return err }
	}
	if k.has(needValidator) {
		calls["Validate"] = func(ctx context.Context) error { return k.can.Validator.Validate(ctx, r.Desired) }
	}
	if k.has(needPower) {
		calls["Reboot"] = func(ctx context.Context) error { _, err := k.can.Power.Reboot(ctx, i.Ref(), "ctx"); return err }
		calls["Stop"] = func(ctx context.Context) error { _, err := k.can.Power.Stop(ctx, i.Ref()); return err }
	}
	if k.has(needAdopter) {
		a := provider.AdoptRequest{From: d.Ref, As: k.machine()}
		k.remember(a.As)
		calls["Adopt"] = func(ctx context.Context) error { _, err := k.can.Adopter.Adopt(ctx, a); return err }
	}
	return calls
}

func endedCtx(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	for _, after := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		for name, call := range k.everyCall(p, r, i) {
			k.cut(name, after, call)
		}
	}
}

func hanging(k *checker) {
	k.possible(Latency)
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	end := k.inject(Latency)
	for name, call := range k.everyCall(p, r, i) {
		k.cut(name, 50*time.Millisecond, call)
	}
	end()
}

// cut makes a call whose ctx ends after a while. A machine may be too busy for once to return in time.
func (k *checker) cut(name string, after time.Duration, call func(ctx context.Context) error) {
	const tries = 3
	for range tries {
		if k.returns(name, after, call) {
			return
		}
	}
	k.failf("%s did not return within %v of the end of its ctx, %d times", name, soon, tries)
}

func (k *checker) returns(name string, after time.Duration, call func(ctx context.Context) error) bool {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	back := make(chan struct{})
	k.calls.Go(func() {
		defer close(back)
		k.see(name, nil, call(ctx))
	})
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-back:
		return true
	case <-timer.C:
	}
	cancel()
	limit := time.NewTimer(soon)
	defer limit.Stop()
	select {
	case <-back:
		return true
	case <-limit.C:
		return false
	}
}
