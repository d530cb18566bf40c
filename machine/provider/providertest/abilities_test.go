// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

func remove(t *testing.T, p provider.Provider, token string, mode provider.Mode) provider.Progress {
	t.Helper()
	progress, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{Token: token}, Cluster: "c1", Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	return progress
}

// A Delete says first that the instance has stopped, and is done when what it held was given back. It goes on by itself.
func TestDeleteTakesTime(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, with(`"stopMilliseconds": 60000, "releaseMilliseconds": 60000`))
	create(t, p, r)
	if got := remove(t, p, r.Token, provider.Retain); got.Stopped || got.Done || got.AfterSeconds != 60 {
		t.Errorf("at once: got %+v, want it to stop for 60 s", got)
	}
	c.pass(time.Minute)
	if got := remove(t, p, r.Token, provider.Retain); !got.Stopped || got.Done || got.AfterSeconds != 60 {
		t.Errorf("after a minute: got %+v, want it stopped and not done for 60 s", got)
	}
	remove(t, p, r.Token, provider.Destroy) // it may become a more thorough end
	if got := remove(t, p, r.Token, provider.Retain); got.Done {
		t.Errorf("got %+v, want it not done", got)
	}
	c.pass(time.Minute)
	if i := c.inventory(); i.Instances+i.Retained+i.Disks != 0 || i.UsedTokens != 1 {
		t.Errorf("after two minutes, without a call: got %+v, want nothing but a used-up token", i)
	}
}

// An update that was begun does not come to its end when the instance leaves.
func TestUpdateOfWhatLeaves(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	i := create(t, p, want(1, config))
	u := ask(i.Token, with(`"updateMilliseconds": 60000`), func(d *provider.Desired) { d.Versions.Kubelet = "v1.37.0" })
	if _, err := provider.AbilitiesOf(p).Updater.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	remove(t, p, i.Token, provider.Retain)
	c.pass(time.Minute)
	got, err := p.Get(t.Context(), i.Ref())
	if err != nil || got.State != provider.Retained || got.Digest != i.Digest {
		t.Errorf("got %+v, %v, want it retained with digest %q", got, err, i.Digest)
	}
}

// R-MA-24: a retained instance says until when it is kept, as the last Delete had it.
func TestRetainedUntil(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	create(t, p, r)
	first := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, until := range []time.Time{first, first.Add(time.Hour), {}} {
		d := provider.DeleteRequest{Ref: provider.Ref{Token: r.Token}, Cluster: "c1", Until: until}
		if _, err := p.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		c.restart()
		if i, err := p.Get(t.Context(), d.Ref); err != nil || i.State != provider.Retained || !i.Until.Equal(until) {
			t.Errorf("got %+v, %v, want it retained until %s", i, err, until)
		}
	}
}

// A Create that was on its way when its token was deleted has no effect: nobody would ever delete what it makes.
func TestLateCreate(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	remove(t, p, r.Token, provider.Retain)
	_, err := p.Create(t.Context(), r)
	wantClass(t, "Create after Delete of its token", err, provider.Conflict)
}

// R-MA-24: disks stay in their zone, are taken over once, and an instance that runs goes on with its ProviderID.
func TestAdopt(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	adopter := provider.AbilitiesOf(p).Adopter
	adopt := func(from provider.Ref, as provider.CreateRequest) (provider.Instance, error) {
		return adopter.Adopt(t.Context(), provider.AdoptRequest{From: from, As: as})
	}
	old := create(t, p, want(1, with(`"stopMilliseconds": 60000`)))
	remove(t, p, old.Token, provider.Retain)
	_, err := adopt(old.Ref(), want(2, config))
	wantClass(t, "Adopt of what is being deleted", err, provider.Conflict)
	c.pass(time.Minute)
	_, err = adopt(old.Ref(), want(2, with(`"zone": "b"`)))
	wantClass(t, "Adopt into another zone", err, provider.InvalidConfig)
	_, err = adopt(old.Ref(), want(1, config))
	wantClass(t, "Adopt by its own token", err, provider.InvalidConfig)
	c.inject(providertest.Fault{Kind: providertest.Stockout, Method: "Adopt"})
	_, err = adopt(old.Ref(), want(2, config))
	wantClass(t, "Adopt without capacity", err, provider.Stockout)

	i, err := adopt(old.Ref(), want(2, with(`"disks": [{"name": "root", "gib": 1}, {"name": "data", "gib": 2}]`)))
	if err != nil || i.State != provider.Running || len(i.Disks) != 2 || i.Disks[0] != old.Disks[0] {
		t.Errorf("Adopt: got %+v, %v, want it Running with the old disk and a new one", i, err)
	}
	_, err = adopt(old.Ref(), want(3, config))
	wantClass(t, "Adopt of what was adopted", err, provider.NotFound)
	other := create(t, p, want(4, config))
	_, err = adopt(old.Ref(), want(4, config))
	wantClass(t, "Adopt by a token that has an instance", err, provider.Conflict)

	moved, err := adopt(other.Ref(), want(5, config))
	if err != nil || moved.ProviderID != other.ProviderID || moved.Owner.Name != "m5" {
		t.Errorf("Adopt of a running instance: got %+v, %v, want it with ProviderID %q and owner m5", moved, err, other.ProviderID)
	}
	got, err := p.Get(t.Context(), provider.Ref{ProviderID: other.ProviderID})
	if err != nil || got.Token != moved.Token {
		t.Errorf("Get by ProviderID: got %+v, %v, want token %q", got, err, moved.Token)
	}
	if i := c.inventory(); i.Instances != 2 || i.Disks != 3 || i.UsedTokens != 2 {
		t.Errorf("got %+v, want 2 instances, 3 disks and 2 used-up tokens", i)
	}
}

// A reference without a token is that of its ProviderID, and nothing is done for one without either.
func TestReferences(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	i := create(t, p, want(1, config))
	if got, err := p.Get(t.Context(), provider.Ref{ProviderID: i.ProviderID}); err != nil || got.Token != i.Token {
		t.Errorf("got %+v, %v, want token %q", got, err, i.Token)
	}
	for _, ref := range []provider.Ref{{}, {ProviderID: "x"}, {Token: "../x"}} {
		_, err := p.Get(t.Context(), ref)
		wantClass(t, "Get", err, provider.InvalidConfig)
		_, err = p.Delete(t.Context(), provider.DeleteRequest{Ref: ref, Cluster: "c1"})
		wantClass(t, "Delete", err, provider.InvalidConfig)
	}
	_, err := p.List(t.Context(), provider.Scope{})
	wantClass(t, "List of no cluster", err, provider.InvalidConfig)
	r := want(2, config)
	r.Owner.Cluster = ""
	_, err = p.Create(t.Context(), r)
	wantClass(t, "Create for no cluster", err, provider.InvalidConfig)
	r = want(1, config)
	r.Owner.Cluster = "c2"
	_, err = p.Create(t.Context(), r)
	wantClass(t, "Create with the token of another cluster", err, provider.Conflict)
}

// R-MA-10: a group has room for as many instances as it was given the size for. One that has no size bounds nothing.
func TestGroup(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	group := provider.AbilitiesOf(p).Group
	in := func(n int) provider.CreateRequest { return want(n, with(`"group": "pool"`)) }
	create(t, p, in(1))
	if err := group.Resize(t.Context(), "pool", 2, in(1).Desired); err != nil {
		t.Fatal(err)
	}
	create(t, p, in(2))
	_, err := p.Create(t.Context(), in(3))
	wantClass(t, "Create in a full group", err, provider.Stockout)
	create(t, p, want(4, config))
	remove(t, p, in(1).Token, provider.Retain)
	create(t, p, in(3))
	c.inject(providertest.Fault{Kind: providertest.Stockout, Method: "Resize"})
	wantClass(t, "Resize without capacity", group.Resize(t.Context(), "pool", 9, in(1).Desired), provider.Stockout)
	wantClass(t, "Resize below 0", group.Resize(t.Context(), "pool", -1, in(1).Desired), provider.InvalidConfig)
	wantClass(t, "Resize of no name", group.Resize(t.Context(), "../x", 1, in(1).Desired), provider.InvalidConfig)
	_, err = p.Create(t.Context(), in(5))
	wantClass(t, "Create after a refused Resize", err, provider.Stockout)
}

// The capacity of a config is known before there is an instance.
func TestCapacity(t *testing.T) {
	c := newCloud(t)
	can := provider.AbilitiesOf(c.client())
	for size, want1 := range map[string]string{"": "2 4Gi", `"size": "medium"`: "4 16Gi", `"size": "large"`: "8 32Gi"} {
		doc := config
		if size != "" {
			doc = with(size)
		}
		got, err := can.Capacity.Capacity(t.Context(), want(1, doc).Desired)
		if err != nil || got["cpu"]+" "+got["memory"] != want1 {
			t.Errorf("%s: got %v, %v, want %s", size, got, err, want1)
		}
	}
}

// The console has each boot, no more than was asked for, and no more than a hundred lines.
func TestConsole(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	can := provider.AbilitiesOf(p)
	i := create(t, p, want(1, config))
	for n := range 120 {
		if _, err := can.Power.Reboot(t.Context(), i.Ref(), strings.Repeat("r", n+1)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := can.Console.Console(t.Context(), i.Ref(), 1<<20)
	if lines := strings.Count(string(text), "\n"); err != nil || lines != 100 || !strings.Contains(string(text), `boot 121: image base, kubelet "v1.36.3"`) {
		t.Errorf("got %d lines, %v, want 100 with boot 121:\n%s", lines, err, text)
	}
	end, err := can.Console.Console(t.Context(), i.Ref(), 10)
	if err != nil || string(end) != string(text[len(text)-10:]) {
		t.Errorf("got %q, %v, want the last 10 bytes", end, err)
	}
	_, err = can.Power.Reboot(t.Context(), i.Ref(), "")
	wantClass(t, "Reboot without an id", err, provider.InvalidConfig)
}

// An admin sees all that a test needs to make the Node of an instance, and of the bootstrap data no more than a digest.
func TestHosts(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	r := want(1, with(`"joins": false, "zone": "b"`))
	r.Desired.Node.Labels = map[string]string{"a": "b"}
	r.Desired.Roles = []string{"worker"}
	r.Join = provider.Join{Endpoint: "https://api:6443", Bootstrap: map[string][]byte{"token": []byte("secret")}}
	create(t, p, r)
	create(t, p, want(2, config))
	hosts, err := c.admin.Instances(t.Context())
	if err != nil || len(hosts) != 2 {
		t.Fatalf("got %+v, %v, want 2", hosts, err)
	}
	slices.SortFunc(hosts, func(a, b providertest.Host) int { return strings.Compare(a.Owner.Name, b.Owner.Name) })
	h := hosts[0]
	if h.ProviderID != "fake:///b/"+h.Token || len(h.Addresses) != 1 {
		t.Errorf("got ProviderID %q and addresses %v, want its zone and token, and an address", h.ProviderID, h.Addresses)
	}
	no := false
	expected := providertest.Host{
		Instance: h.Instance, Joins: false, Boots: 1, Endpoint: "https://api:6443", Desired: r.Desired,
		Bootstrap: map[string]string{"token": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"}, // of "secret"
		Config: providertest.Config{
			Kind: provider.Kind{APIVersion: "fake.belay.dev/v1", Kind: "FakeConfig"}, Size: "small", Zone: "b", Image: "base",
			Disks: []providertest.DiskConfig{{Name: "root", GiB: 10}}, Joins: &no,
		},
	}
	expected.Desired.Config = nil
	if !reflect.DeepEqual(h, expected) {
		t.Errorf("got %+v, want %+v", h, expected)
	}
	if !hosts[1].Joins {
		t.Errorf("got %+v, want one that joins", hosts[1])
	}
}

// A disk keeps what is written on it, as far as there is room, and belongs to an instance.
func TestDisks(t *testing.T) {
	c := newCloud(t)
	i := create(t, c.client(), want(1, config))
	id := i.Disks[0].ID
	if i.Disks[0].Bytes != 10<<30 {
		t.Errorf("got %d bytes, want 10 GiB", i.Disks[0].Bytes)
	}
	if err := c.admin.WriteDisk(t.Context(), id, []byte("data")); err != nil {
		t.Fatal(err)
	}
	wantClass(t, "too much", c.admin.WriteDisk(t.Context(), id, make([]byte, 64<<10+1)), provider.InvalidConfig)
	c.restart()
	if got, err := c.admin.ReadDisk(t.Context(), id); err != nil || string(got) != "data" {
		t.Errorf("got %q, %v, want what was written", got, err)
	}
	wantClass(t, "another disk", c.admin.WriteDisk(t.Context(), "x.root", nil), provider.NotFound)
	_, err := c.admin.ReadDisk(t.Context(), "x.root")
	wantClass(t, "another disk", err, provider.NotFound)
}
