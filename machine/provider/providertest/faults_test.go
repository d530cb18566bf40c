// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// A fault that refuses has the class that it is named for, is for its method alone, comes when others have passed, and ends by its count.
func TestRefusals(t *testing.T) {
	refusals := []providertest.FaultKind{providertest.RateLimited, providertest.Unavailable, providertest.Unauthorized}
	for _, kind := range refusals {
		c := newCloud(t)
		p, r := c.client(), want(1, config)
		i := create(t, p, r)
		c.inject(providertest.Fault{Kind: kind, Method: "Get", Skip: 2, Count: 3, Delay: 1500 * time.Millisecond})
		if _, err := p.List(t.Context(), provider.Scope{Cluster: "c1"}); err != nil {
			t.Errorf("%s of Get: List: got %v, want no error", kind, err)
		}
		var got []provider.Class
		for range 7 {
			_, err := p.Get(t.Context(), i.Ref())
			got = append(got, provider.ClassOf(err))
			if after := provider.AfterOf(err); kind == providertest.RateLimited && err != nil && after != 2*time.Second {
				t.Errorf("%s for 1.5 s: got After %s, want 2s", kind, after)
			}
		}
		bad := provider.Class(kind)
		if want := []provider.Class{"", "", bad, bad, bad, "", ""}; !slices.Equal(got, want) {
			t.Errorf("%s after 2 calls, 3 times: got %q, want %q", kind, got, want)
		}
	}
}

// A call whose caller leaves while it waits has no effect.
func TestLatency(t *testing.T) {
	c := newCloud(t)
	// What this client gets is all that the server does.
	direct := roundTripper(func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w.Result()
	})
	p, err := providertest.New(providertest.Options{URL: "http://cloud", HTTP: &http.Client{Transport: direct}})
	if err != nil {
		t.Fatal(err)
	}
	r := want(1, config)
	c.inject(providertest.Fault{Kind: providertest.Latency, Method: "Create", Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = p.Create(ctx, r)
	wantClass(t, "Create that takes an hour", err, provider.Unavailable)
	if i := c.inventory(); i.Instances != 0 || i.Calls["Create"] != 1 {
		t.Errorf("got %+v, want no instance and 1 call", i)
	}
	c.inject(providertest.Fault{Kind: providertest.Latency, Delay: 20 * time.Millisecond})
	began := time.Now()
	create(t, p, r)
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("Create with a latency of 20 ms took %s", took)
	}
}

// roundTripper answers requests in this process.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A lost reply is of a call that had its effect.
func TestLostReply(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	c.inject(providertest.Fault{Kind: providertest.LostReply, Method: "Create"})
	_, err := p.Create(t.Context(), r)
	wantClass(t, "Create", err, provider.Unavailable)
	if i := c.inventory(); i.Instances != 1 || i.Disks != 1 {
		t.Errorf("got %+v, want an instance and a disk", i)
	}
	create(t, p, r)
	if i := c.inventory(); i.Instances != 1 {
		t.Errorf("after a second Create: got %+v, want one instance", i)
	}
}

func tokens(t *testing.T, p provider.Provider) []string {
	t.Helper()
	list, err := p.List(t.Context(), provider.Scope{Cluster: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, i := range list {
		tokens = append(tokens, i.Token)
	}
	return tokens
}

// A list that is behind shows what was there, neither what came nor that something went, until its time or its count is over.
func TestStaleList(t *testing.T) {
	c := newCloud(t)
	p, old, young := c.client(), want(1, config), want(2, config)
	create(t, p, old)
	c.inject(providertest.Fault{Kind: providertest.StaleList, Count: 2},
		providertest.Fault{Kind: providertest.StaleList, Count: 9, Delay: time.Minute})
	create(t, p, young)
	if _, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{Token: old.Token}, Cluster: "c1", Mode: provider.Destroy}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if got := tokens(t, p); !slices.Equal(got, []string{old.Token}) {
			t.Errorf("list %d: got %q, want what was there before, %q", n, got, old.Token)
		}
	}
	c.pass(time.Minute)
	if got := tokens(t, p); !slices.Equal(got, []string{young.Token}) {
		t.Errorf("a minute later: got %q, want %q", got, young.Token)
	}
}

// What was made by half is the instance of its token, Pending for ever, and all of it goes with Delete.
func TestPartial(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	c.inject(providertest.Fault{Kind: providertest.Partial})
	create(t, p, r)
	c.pass(time.Hour)
	if i := create(t, p, r); i.State != provider.Pending || i.ProviderID != "" || len(i.Disks) != 1 || i.Owner != r.Owner {
		t.Errorf("got %+v, want it Pending with a disk, its owner and no ProviderID", i)
	}
	if got := tokens(t, p); !slices.Equal(got, []string{r.Token}) {
		t.Errorf("List: got %q, want %q", got, r.Token)
	}
	if i := c.inventory(); i.Instances != 1 || i.Disks != 1 {
		t.Errorf("got %+v, want an instance and a disk", i)
	}
	_, err := provider.AbilitiesOf(p).Power.Reboot(t.Context(), provider.Ref{Token: r.Token}, "1")
	wantClass(t, "Reboot", err, provider.Conflict)
	d := provider.DeleteRequest{Ref: provider.Ref{Token: r.Token}, Cluster: "c1", Mode: provider.Destroy}
	if progress, err := p.Delete(t.Context(), d); err != nil || !progress.Done {
		t.Errorf("Delete: got %+v, %v, want it done", progress, err)
	}
	if i := c.inventory(); i.Instances+i.Disks != 0 {
		t.Errorf("got %+v, want nothing", i)
	}
}

// A start that fails makes a Broken instance, which a reboot repairs. A slow one is Pending for longer.
func TestStarts(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	c.inject(providertest.Fault{Kind: providertest.StartFails})
	slow := `"startMilliseconds": 60000`
	bad := create(t, p, want(1, with(slow)))
	c.inject(providertest.Fault{Kind: providertest.SlowStart, Delay: time.Minute})
	late := create(t, p, want(2, with(slow)))
	usual := create(t, p, want(3, with(slow)))
	states := func() (states []provider.State) {
		for _, i := range []provider.Instance{bad, late, usual} {
			got, err := p.Get(t.Context(), i.Ref())
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, got.State)
		}
		return states
	}
	wantStates := func(when string, want ...provider.State) {
		t.Helper()
		if got := states(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	wantStates("at once", provider.Pending, provider.Pending, provider.Pending)
	c.pass(time.Minute)
	wantStates("after a minute", provider.Broken, provider.Pending, provider.Running)
	c.pass(time.Minute)
	wantStates("after two", provider.Broken, provider.Running, provider.Running)
	progress, err := provider.AbilitiesOf(p).Power.Reboot(t.Context(), bad.Ref(), "repair")
	if err != nil || progress.Done || progress.AfterSeconds != 60 {
		t.Errorf("Reboot: got %+v, %v, want to ask again after 60 s", progress, err)
	}
	c.pass(time.Minute)
	wantStates("after the reboot", provider.Running, provider.Running, provider.Running)
}

// A stockout is of one zone, leaves nothing, and ends.
func TestStockout(t *testing.T) {
	c := newCloud(t)
	p, a, b := c.client(), want(1, config), want(2, with(`"zone": "b"`))
	c.inject(providertest.Fault{Kind: providertest.Stockout, Zone: "a", Count: 2})
	for range 2 {
		create(t, p, b)
		_, err := p.Create(t.Context(), a)
		wantClass(t, "Create in zone a", err, provider.Stockout)
		if err != nil && !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("got %q, want the zone in it", err)
		}
		b = want(3, with(`"zone": "b"`))
	}
	create(t, p, a)
	if got := len(tokens(t, p)); got != 3 {
		t.Errorf("got %d instances, want 3", got)
	}
}

// A ProviderID that is given twice is that of another instance of the cluster. The fault waits until there is one.
func TestDuplicateID(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	c.inject(providertest.Fault{Kind: providertest.DuplicateID})
	first := create(t, p, want(1, config))
	second := create(t, p, want(2, config))
	third := create(t, p, want(3, config))
	if first.ProviderID != provider.ProviderID("fake", "a", first.Token) || second.ProviderID != first.ProviderID || third.ProviderID == first.ProviderID {
		t.Errorf("got %q, %q and %q, want the first one twice", first.ProviderID, second.ProviderID, third.ProviderID)
	}
}

// An instance that was lost is NotFound, holds nothing, and its token makes no other one.
func TestLose(t *testing.T) {
	c := newCloud(t)
	p, r := c.client(), want(1, config)
	i := create(t, p, r)
	if err := c.admin.Lose(t.Context(), r.Token); err != nil {
		t.Fatal(err)
	}
	_, err := p.Get(t.Context(), i.Ref())
	wantClass(t, "Get", err, provider.NotFound)
	_, err = p.Create(t.Context(), r)
	wantClass(t, "Create", err, provider.Conflict)
	if got := c.inventory(); got.Instances+got.Disks != 0 || got.UsedTokens != 1 {
		t.Errorf("got %+v, want a used-up token and nothing else", got)
	}
	wantClass(t, "losing it again", c.admin.Lose(t.Context(), r.Token), provider.NotFound)
}

// Faults that make no sense are refused with the field that is wrong. Those that wait are shown as far as they are left, and can be ended.
func TestFaultsAreChecked(t *testing.T) {
	c := newCloud(t)
	for want, f := range map[string]providertest.Fault{
		`kind "Flood"`:         {Kind: "Flood"},
		`method "Fly"`:         {Kind: providertest.Latency, Method: "Fly", Delay: 1},
		`method "Get"`:         {Kind: providertest.Partial, Method: "Get"},
		`method "List"`:        {Kind: providertest.KillWrite, Method: "List"},
		`zone "a"`:             {Kind: providertest.Unavailable, Zone: "a"},
		"skip is -1":           {Kind: providertest.Unavailable, Skip: -1},
		"count is -1":          {Kind: providertest.Unavailable, Count: -1},
		"count is 1000001":     {Kind: providertest.Unavailable, Count: 1000001},
		"delay is -1ns":        {Kind: providertest.RateLimited, Delay: -1},
		"delay is 1h0m0.0":     {Kind: providertest.RateLimited, Delay: time.Hour + time.Millisecond},
		"delay is 0: a fault ": {Kind: providertest.Latency},
	} {
		err := c.admin.Inject(t.Context(), f)
		if provider.ClassOf(err) != provider.InvalidConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want InvalidConfig with %q", f, err, want)
		}
	}
	c.inject(providertest.Fault{Kind: providertest.Unavailable, Count: 2},
		providertest.Fault{Kind: providertest.Stockout, Skip: 4})
	_, err := c.client().List(t.Context(), provider.Scope{Cluster: "c1"})
	wantClass(t, "List", err, provider.Unavailable)
	left, err := c.admin.Faults(t.Context())
	want := []providertest.Fault{{Kind: providertest.Unavailable, Count: 1}, {Kind: providertest.Stockout, Skip: 4, Count: 1}}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("got %+v, %v, want %+v", left, err, want)
	}
	if err := c.admin.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := c.admin.Faults(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("after Clear: got %+v, %v, want none", left, err)
	}
	tokens(t, c.client())
}

// The list of faults has a limit.
func TestFaultsAreBounded(t *testing.T) {
	c := newCloud(t)
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		err = c.admin.Inject(t.Context(), providertest.Fault{Kind: providertest.Partial})
	}
	if n != 1001 || provider.ClassOf(err) != provider.InvalidConfig {
		t.Errorf("fault %d: got %v, want the 1001st to be InvalidConfig", n, err)
	}
}
