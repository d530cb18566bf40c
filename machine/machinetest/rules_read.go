// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

func readRules() []rule {
	return []rule{
		promise("GetOfUnknownIsNotFound", "Get of a token that never was is NotFound", getUnknown, needGet),
		promise("TagsComeBackFromGet", "token, full owner and digest come back from Get after a restart of everything", getTags, needGet),
		promise("TagsComeBackFromList", "token, full owner and digest come back from List after a restart of everything", listTags, needList),
		promise("ListIsOfOneCluster", "List returns what its cluster has made and nothing of another one", listScope, needList),
		promise("ListHoldsRetained", "List returns instances that are retained, as such, until they are destroyed", listRetained, needList),
		promise("ListHoldsStopped", "List returns instances that are stopped", listStopped, needList, needPower),
	}
}

func getUnknown(k *checker) {
	p, r := k.client(), k.machine()
	_, err := k.get(p, provider.Ref{Token: r.Token})
	k.wantClass("Get of an unknown token", err, provider.NotFound)
	_, err = k.get(p, provider.Ref{Token: r.Token, ProviderID: "x:///" + r.Token})
	k.wantClass("Get of an unknown token and ProviderID", err, provider.NotFound)
}

// namedLong has the longest name that an object can have.
func (k *checker) namedLong() provider.CreateRequest {
	o := k.machine().Owner
	o.Name = strings.Repeat("long-", 50) + "end"
	o.UID += "-long"
	o.Incarnation = 7
	return k.incarnation(o)
}

// wantTags checks what is written on an instance.
func (k *checker) wantTags(call string, i provider.Instance, r provider.CreateRequest) {
	if i.Token != r.Token || i.Owner != r.Owner || i.Digest != r.Digest {
		k.failf("%s: got token %q, owner %+v, digest %q, want %q, %+v, %q", call, i.Token, i.Owner, i.Digest, r.Token, r.Owner, r.Digest)
	}
}

func getTags(k *checker) {
	p := k.client()
	for _, r := range []provider.CreateRequest{k.machine(), k.namedLong()} {
		k.wantTags("Get while it starts", k.mustGet(p, k.mustCreate(p, r).Ref()), r)
		i := k.running(p, r)
		fresh := k.client()
		k.wantTags("Get by token", k.mustGet(fresh, provider.Ref{Token: r.Token}), r)
		k.wantTags("Get by token and ProviderID", k.mustGet(fresh, i.Ref()), r)
	}
}

func listTags(k *checker) {
	p := k.client()
	for _, r := range []provider.CreateRequest{k.machine(), k.namedLong()} {
		i := k.running(p, r)
		listed := k.listed(k.client(), r, provider.Running)
		k.wantTags("List", listed, r)
		if listed.ProviderID != i.ProviderID {
			k.failf("List: got ProviderID %q, want %q", listed.ProviderID, i.ProviderID)
		}
	}
}

// listed waits for an instance to be in the list in a state. The list may be behind.
func (k *checker) listed(p provider.Provider, r provider.CreateRequest, want provider.State) (i provider.Instance) {
	var (
		all   []provider.Instance
		found bool
	)
	if !k.poll(func() bool {
		all = k.mustList(p, r.Owner.Cluster)
		i, found = k.find(all, r.Token)
		return found && i.State == want
	}) {
		k.failf("List of cluster %q: got %d instances, with %q: %t, in state %q, want it to be %s", r.Owner.Cluster, len(all), r.Token, found, i.State, want)
	}
	return i
}

func (k *checker) unlisted(p provider.Provider, r provider.CreateRequest) {
	var i provider.Instance
	if !k.poll(func() bool {
		var found bool
		i, found = k.find(k.mustList(p, r.Owner.Cluster), r.Token)
		return !found
	}) {
		k.failf("List of cluster %q: got instance %q in state %q, want it to be gone", r.Owner.Cluster, r.Token, i.State)
	}
}

func listScope(k *checker) {
	p, ours, theirs := k.client(), k.machineOf("a"), k.machineOf("b")
	theirs.Owner.UID, theirs.Owner.Name = ours.Owner.UID, ours.Owner.Name // two clusters may have a machine of the same name
	theirs = k.incarnation(theirs.Owner)
	k.running(p, ours)
	k.running(p, theirs)
	for _, r := range []provider.CreateRequest{ours, theirs} {
		k.listed(p, r, provider.Running)
		if all := k.mustList(p, r.Owner.Cluster); len(all) != 1 {
			k.failf("List of cluster %q: got %d instances, want 1", r.Owner.Cluster, len(all))
		}
	}
	if all := k.mustList(p, k.cluster("of-nobody")); len(all) != 0 {
		k.failf("List of a cluster that has made nothing: got %d instances, want none", len(all))
	}
}

func listRetained(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	k.mustDelete(p, k.deletion(r, i.Ref(), provider.Retain))
	k.needsDisks()
	fresh := k.client()
	listed := k.listed(fresh, r, provider.Retained)
	if listed.Owner != r.Owner {
		k.failf("List: got owner %+v, want %+v", listed.Owner, r.Owner)
	}
	if k.has(needGet) && k.mustGet(fresh, i.Ref()).State != provider.Retained {
		k.failf("Get: got another state than Retained")
	}
	k.mustDelete(fresh, k.deletion(r, listed.Ref(), provider.Destroy))
	k.unlisted(fresh, r)
}

// needsDisks skips a rule about retained instances where nothing was kept, as instances have no disks.
func (k *checker) needsDisks() {
	if k.count().Disks == 0 {
		if !k.has(needSentinel) {
			k.skipf("instances have no disks")
		}
		k.failf("nothing was retained: the backend holds no disks")
	}
}

func listStopped(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	k.mustStop(i.Ref())
	k.listed(k.client(), r, provider.Stopped)
}
