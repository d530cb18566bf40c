// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"github.com/belayproject/belay/machine/provider"
)

func powerRules() []rule {
	return []rule{
		promise("StopIsIdempotent", "Stop is Done when the instance runs no more, also when it is called again, and disks stay", stopTwice, needPower),
		promise("StoppedCanBeDeleted", "a stopped instance is still that of its token, and Delete works on it", stopAndDelete, needPower),
		promise("RebootIsIdempotent", "Reboot is Done again for the same id, and the instance and its data are the same", rebootTwice, needPower),
		promise("RebootOncePerID", "Reboot starts the instance once for each id", rebootOnce, needPower, needBoots),
		promise("PowerOfUnknownIsNotFound", "Stop and Reboot of what never was are NotFound", powerUnknown, needPower),
		promise("ConsoleIsBounded", "Console returns at most as much as it was asked for, and NotFound for what never was", console, needConsole),
	}
}

func (k *checker) mustStop(ref provider.Ref) {
	if _, err := k.done("Stop", func() (provider.Progress, error) { return k.stop(ref) }); err != nil {
		k.failf("Stop of %q: got error %v, want it to be done", ref.Token, err)
	}
}

func (k *checker) mustReboot(ref provider.Ref, id string) {
	if _, err := k.done("Reboot", func() (provider.Progress, error) { return k.reboot(ref, id) }); err != nil {
		k.failf("Reboot of %q with id %q: got error %v, want it to be done", ref.Token, id, err)
	}
}

// boots is 0 where the harness can't tell.
func (k *checker) boots(ref provider.Ref) int {
	if !k.has(needBoots) {
		return 0
	}
	n, err := k.h.Boots(k.ctx, ref)
	if err != nil {
		k.failf("boots of %q: %v", ref.Token, err)
	}
	return n
}

func stopTwice(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, r.Token)
	}
	before := k.count()
	for range 2 {
		k.mustStop(i.Ref())
		if !k.lacking(needRunning, "whether it runs") {
			k.wantRunning(i.Ref(), false)
		}
		if got := k.again(p, r); got.State != provider.Stopped || got.ProviderID != i.ProviderID {
			k.failf("after Stop: got state %q and ProviderID %q, want Stopped and %q", got.State, got.ProviderID, i.ProviderID)
		}
		if !k.lacking(needSentinel, "whether the data is there") {
			k.wantSentinel(i, r.Token, "after Stop")
		}
	}
	if now := k.count(); now != before {
		k.failf("after Stop the backend holds %v, want %v", now, before)
	}
}

func stopAndDelete(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	k.mustStop(i.Ref())
	if got := k.mustCreate(k.client(), r); got.ProviderID != i.ProviderID {
		k.failf("Create with the token of a stopped instance: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
	}
	k.wantInstances(1, "after Create with the token of a stopped instance")
	k.destroy(p, r, i.Ref())
	k.wantNothing("when Delete of a stopped instance is done")
}

func rebootTwice(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	if k.has(needSentinel) {
		k.writeSentinel(i, r.Token)
	}
	before := k.count()
	for range 2 {
		k.mustReboot(i.Ref(), "first")
		if got := k.started(p, r, k.again(p, r)); got.ProviderID != i.ProviderID {
			k.failf("after Reboot: got ProviderID %q, want %q", got.ProviderID, i.ProviderID)
		}
		if !k.lacking(needSentinel, "whether the data is there") {
			k.wantSentinel(i, r.Token, "after Reboot")
		}
	}
	if now := k.count(); now != before {
		k.failf("after Reboot the backend holds %v, want %v", now, before)
	}
}

func rebootOnce(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	began := k.boots(i.Ref())
	for n, id := range []string{"first", "second"} {
		k.mustReboot(i.Ref(), id)
		k.mustReboot(i.Ref(), id)
		k.started(p, r, k.again(p, r))
		if got := k.boots(i.Ref()); got != began+n+1 {
			k.failf("after Reboot with %d ids, each called twice: got %d boots, want %d", n+1, got-began, n+1)
		}
	}
}

func powerUnknown(k *checker) {
	ref := provider.Ref{Token: k.machine().Token}
	_, err := k.stop(ref)
	k.wantClass("Stop", err, provider.NotFound)
	_, err = k.reboot(ref, "first")
	k.wantClass("Reboot", err, provider.NotFound)
	k.wantNothing("after Stop and Reboot of what never was")
}

func console(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	ctx, cancel := k.limited()
	defer cancel()
	for _, limit := range []int{0, 1, 4096} {
		got, err := k.can.Console.Console(ctx, i.Ref(), limit)
		k.see("Console", string(got), err)
		if err != nil || len(got) > limit {
			k.failf("Console with limit %d: got %d bytes, error %v", limit, len(got), err)
		}
	}
	_, err := k.can.Console.Console(ctx, provider.Ref{Token: k.machine().Token}, 1)
	k.see("Console", nil, err)
	k.wantClass("Console of what never was", err, provider.NotFound)
}
