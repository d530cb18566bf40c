// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/machine/provider"
)

// remember has what a call may make deleted in the end.
func (k *checker) remember(r provider.CreateRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.made, func(d provider.DeleteRequest) bool { return d.Ref.Token == r.Token }) {
		return
	}
	k.made = append(k.made, k.deletion(r, provider.Ref{Token: r.Token}, provider.Destroy))
}

func (k *checker) deletion(r provider.CreateRequest, ref provider.Ref, mode provider.Mode) provider.DeleteRequest {
	return provider.DeleteRequest{Ref: ref, Mode: mode, Cluster: r.Owner.Cluster, Credentials: r.Join.Credentials}
}

func (k *checker) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(k.ctx, k.wait())
}

// create makes one call. All calls of the suite go through these functions, which look for secrets in what comes back.
func (k *checker) create(p provider.Provider, r provider.CreateRequest) (provider.Instance, error) {
	ctx, cancel := k.limited()
	defer cancel()
	return k.createIn(ctx, p, r)
}

func (k *checker) createIn(ctx context.Context, p provider.Provider, r provider.CreateRequest) (provider.Instance, error) {
	k.remember(r)
	i, err := p.Create(ctx, r)
	k.see("Create", i, err)
	return i, err
}

func (k *checker) get(p provider.Provider, ref provider.Ref) (provider.Instance, error) {
	ctx, cancel := k.limited()
	defer cancel()
	i, err := p.Get(ctx, ref)
	k.see("Get", i, err)
	return i, err
}

func (k *checker) list(p provider.Provider, cluster string) ([]provider.Instance, error) {
	ctx, cancel := k.limited()
	defer cancel()
	all, err := p.List(ctx, provider.Scope{Cluster: cluster})
	k.see("List", all, err)
	return all, err
}

func (k *checker) delete(p provider.Provider, d provider.DeleteRequest) (provider.Progress, error) {
	ctx, cancel := k.limited()
	defer cancel()
	progress, err := p.Delete(ctx, d)
	k.see("Delete", progress, err)
	return progress, err
}

func (k *checker) update(r provider.UpdateRequest) (provider.Progress, error) {
	ctx, cancel := k.limited()
	defer cancel()
	progress, err := k.can.Updater.Update(ctx, r)
	k.see("Update", progress, err)
	return progress, err
}

func (k *checker) plan(r provider.UpdateRequest) (provider.Plan, error) {
	ctx, cancel := k.limited()
	defer cancel()
	plan, err := k.can.Planner.Plan(ctx, r)
	k.see("Plan", plan, err)
	return plan, err
}

func (k *checker) validate(d provider.Desired) error {
	ctx, cancel := k.limited()
	defer cancel()
	err := k.can.Validator.Validate(ctx, d)
	k.see("Validate", nil, err)
	return err
}

func (k *checker) adopt(r provider.AdoptRequest) (provider.Instance, error) {
	k.remember(r.As)
	ctx, cancel := k.limited()
	defer cancel()
	i, err := k.can.Adopter.Adopt(ctx, r)
	k.see("Adopt", i, err)
	return i, err
}

func (k *checker) stop(ref provider.Ref) (provider.Progress, error) {
	ctx, cancel := k.limited()
	defer cancel()
	progress, err := k.can.Power.Stop(ctx, ref)
	k.see("Stop", progress, err)
	return progress, err
}

func (k *checker) reboot(ref provider.Ref, id string) (provider.Progress, error) {
	ctx, cancel := k.limited()
	defer cancel()
	progress, err := k.can.Power.Reboot(ctx, ref, id)
	k.see("Reboot", progress, err)
	return progress, err
}

// mustCreate creates an instance, which has to be there then.
func (k *checker) mustCreate(p provider.Provider, r provider.CreateRequest) provider.Instance {
	i, err := k.create(p, r)
	for deadline := time.Now().Add(k.wait()); provider.ClassOf(err) == provider.RateLimited && time.Now().Before(deadline); {
		k.pause(max(provider.AfterOf(err), time.Millisecond))
		i, err = k.create(p, r)
	}
	if err != nil {
		k.failf("Create: got error %v, want an instance", err)
	}
	if i.Token != r.Token {
		k.failf("Create: got an instance with token %q, want %q", i.Token, r.Token)
	}
	return i
}

func (k *checker) pause(d time.Duration) {
	if !backoff.Sleep(k.ctx, d) {
		k.failf("%v", k.ctx.Err())
	}
}

// running creates an instance and waits for it to run.
func (k *checker) running(p provider.Provider, r provider.CreateRequest) provider.Instance {
	i := k.mustCreate(p, r)
	return k.started(p, r, i)
}

func (k *checker) started(p provider.Provider, r provider.CreateRequest, i provider.Instance) provider.Instance {
	ran := k.poll(func() bool {
		switch i.State {
		case provider.Running:
			return true
		case provider.Broken:
			k.failf("instance %q is %s, want it to run: %s", i.Token, i.State, i.Message)
		}
		i = k.again(p, r)
		return i.State == provider.Running
	})
	if !ran {
		k.failf("instance %q is %q after %v, want it to run", r.Token, i.State, k.wait())
	}
	if i.ProviderID == "" {
		k.failf("instance %q runs without a ProviderID", r.Token)
	}
	return i
}

// again asks for an instance once more.
func (k *checker) again(p provider.Provider, r provider.CreateRequest) provider.Instance {
	if k.has(needGet) {
		return k.mustGet(p, provider.Ref{Token: r.Token})
	}
	return k.mustCreate(p, r)
}

func (k *checker) mustGet(p provider.Provider, ref provider.Ref) provider.Instance {
	i, err := k.get(p, ref)
	if err != nil {
		k.failf("Get %q: got error %v, want the instance", ref.Token, err)
	}
	return i
}

func (k *checker) mustList(p provider.Provider, cluster string) []provider.Instance {
	all, err := k.list(p, cluster)
	if err != nil {
		k.failf("List of cluster %q: got error %v, want its instances", cluster, err)
	}
	return all
}

// find returns the instance of a token in a list.
func (k *checker) find(all []provider.Instance, token string) (provider.Instance, bool) {
	i := slices.IndexFunc(all, func(i provider.Instance) bool { return i.Token == token })
	if i < 0 {
		return provider.Instance{}, false
	}
	return all[i], true
}

// deleted calls Delete until it is done.
func (k *checker) deleted(p provider.Provider, d provider.DeleteRequest) (provider.Progress, error) {
	return k.done("Delete", func() (provider.Progress, error) { return k.delete(p, d) })
}

// done makes a call until it is done. It is used by goroutines and does not fail.
func (k *checker) done(name string, call func() (provider.Progress, error)) (provider.Progress, error) {
	var progress provider.Progress
	deadline := time.Now().Add(k.wait())
	for pause := k.backOff(); ; {
		var err error
		progress, err = call()
		if progress.Done || err != nil && provider.ClassOf(err) != provider.RateLimited {
			return progress, err
		}
		if !backoff.Sleep(k.ctx, max(pause.Next(), provider.AfterOf(err))) {
			return progress, fmt.Errorf("%s: %w", name, k.ctx.Err())
		}
		if time.Now().After(deadline) {
			if err != nil {
				return progress, fmt.Errorf("%s fails for %v: %w", name, k.wait(), err)
			}
			return progress, fmt.Errorf("%s is not done after %v: it says %q", name, k.wait(), progress.Message)
		}
	}
}

func (k *checker) mustDelete(p provider.Provider, d provider.DeleteRequest) provider.Progress {
	progress, err := k.deleted(p, d)
	if err != nil {
		k.failf("Delete of %q, %s: got error %v, want it to be done", d.Ref.Token, d.Mode, err)
	}
	return progress
}

// wantClass checks the class of an error.
func (k *checker) wantClass(call string, err error, want provider.Class) {
	if got := provider.ClassOf(err); got != want {
		k.failf("%s: got class %q (error: %v), want %q", call, got, err, want)
	}
}

// unsure reports whether an error says that a call may have had its effect, so that it is made again.
func unsure(err error) bool {
	c := provider.ClassOf(err)
	return c == provider.Unavailable || c == provider.Internal || c == provider.RateLimited
}

// updating asks for an instance to become what is desired.
func (k *checker) updating(r provider.CreateRequest, i provider.Instance, d provider.Desired) provider.UpdateRequest {
	return provider.UpdateRequest{Ref: i.Ref(), Cluster: r.Owner.Cluster, Digest: d.Digest(), Desired: d, Observed: r.Desired.Versions, Join: r.Join}
}
