// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// The provider in memory keeps all promises, and nothing of it is skipped (R-MA-02, R-MA-06, R-MA-08, R-MA-24). One of its lists has a thousand
// instances (R-MA-30).
func TestMemory(t *testing.T) {
	h := new(Memory).Harness()
	h.Skips = []string{}
	Run(t, h)
}

// It keeps them also when everything takes long and lists are behind.
func TestSlowMemory(t *testing.T) {
	m := &Memory{Polls: 3, Latency: 20 * time.Millisecond, ListLag: 2 * time.Second}
	h := m.Harness()
	h.Wait, h.Many = time.Minute, 100
	if report := check(t, h); len(report.Of(Passed)) != len(Rules()) {
		t.Errorf("not all rules passed:\n%s", report)
	}
}

// It keeps them behind decorators too.
func TestDecoratedMemory(t *testing.T) {
	m := new(Memory)
	p := provider.Observe(provider.Timeout(m, time.Minute), func(provider.Call) {})
	if report := check(t, m.harness(p)); len(report.Of(Passed)) != len(Rules()) {
		t.Errorf("not all rules passed:\n%s", report)
	}
}

func request(name string) provider.CreateRequest {
	o := provider.Owner{Cluster: "c", Name: name, UID: name, Incarnation: 1}
	d := provider.Desired{Config: []byte(`{"size": "s"}`)}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, 1), Owner: o, Digest: d.Digest(), Desired: d}
}

func mustCreate(t *testing.T, m *Memory, r provider.CreateRequest) provider.Instance {
	t.Helper()
	i, err := m.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func wantState(t *testing.T, m *Memory, token string, want provider.State) {
	t.Helper()
	if i, err := m.Get(t.Context(), provider.Ref{Token: token}); err != nil || i.State != want {
		t.Errorf("Get: got state %q, error %v, want %q", i.State, err, want)
	}
}

// An instance is Pending for as many calls as Polls says, whichever they are, and so is everything else that takes longer.
func TestMemoryTakesPolls(t *testing.T) {
	m := &Memory{Polls: 2}
	r := request("a")
	if i := mustCreate(t, m, r); i.State != provider.Pending {
		t.Errorf("Create: got state %q, want Pending", i.State)
	}
	if all, err := m.List(t.Context(), provider.Scope{Cluster: "c"}); err != nil || len(all) != 1 || all[0].State != provider.Pending {
		t.Errorf("List: got %v, error %v, want one that is Pending", all, err)
	}
	wantState(t, m, r.Token, provider.Running)
	d := provider.DeleteRequest{Ref: provider.Ref{Token: r.Token}, Mode: provider.Destroy, Cluster: "c"}
	for n, want := range []bool{false, false, true} {
		if progress, err := m.Delete(t.Context(), d); err != nil || progress.Done != want {
			t.Errorf("Delete, call %d: got %+v, error %v, want Done: %t", n+1, progress, err, want)
		}
	}
	if got := m.Calls(); got["Create"] != 1 || got["List"] != 1 || got["Get"] != 1 || got["Delete"] != 3 {
		t.Errorf("got calls %v, want 1 Create, 1 List, 1 Get, 3 Delete", got)
	}
}

// List is behind by ListLag, and Get is not.
func TestMemoryListLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{ListLag: time.Second}
		count := func(want int) {
			t.Helper()
			if all, err := m.List(t.Context(), provider.Scope{Cluster: "c"}); err != nil || len(all) != want {
				t.Errorf("List: got %d instances, error %v, want %d", len(all), err, want)
			}
		}
		a, b := request("a"), request("b")
		mustCreate(t, m, a)
		wantState(t, m, a.Token, provider.Running)
		count(0)
		time.Sleep(600 * time.Millisecond)
		mustCreate(t, m, b)
		count(0)
		time.Sleep(600 * time.Millisecond)
		count(1)
		time.Sleep(600 * time.Millisecond)
		count(2)
		m.Lose(a.Token)
		count(2)
		time.Sleep(time.Second)
		count(1)
	})
}

// A call that is cut off in the second half of its time has had its effect.
func TestMemoryLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{Latency: time.Second}
		for name, c := range map[string]struct {
			after time.Duration
			want  int
		}{"early": {400 * time.Millisecond, 0}, "late": {600 * time.Millisecond, 1}} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			_, err := m.Create(ctx, request(name))
			cancel()
			if provider.ClassOf(err) != provider.Unavailable || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.after {
				t.Errorf("%s: got error %v after %v, want Unavailable after %v", name, err, time.Since(began), c.after)
			}
			if _, made := m.Made(request(name).Token); made != (c.want == 1) {
				t.Errorf("%s: made: %t, want %d instances", name, made, c.want)
			}
		}
	})
}

// What happens to instances from outside.
func TestMemoryAccidents(t *testing.T) {
	m := &Memory{Limit: 1}
	r := request("a")
	r.Join.Endpoint = "https://host:6443"
	mustCreate(t, m, r)
	if made, ok := m.Made(r.Token); !ok || made.Join.Endpoint != r.Join.Endpoint {
		t.Errorf("Made: got %+v, %t, want the request", made, ok)
	}
	if _, err := m.Create(t.Context(), request("b")); provider.ClassOf(err) != provider.Stockout {
		t.Errorf("Create beyond the limit: got error %v, want Stockout", err)
	}
	if err := m.Resize(t.Context(), "pool", 2, r.Desired); provider.ClassOf(err) != provider.Stockout {
		t.Errorf("Resize beyond the limit: got error %v, want Stockout", err)
	}
	m.Break(r.Token, "it does not start")
	if all := m.Instances(); len(all) != 1 || all[0].State != provider.Broken || all[0].Message != "it does not start" {
		t.Errorf("Instances: got %+v, want one that is Broken", all)
	}
	if _, err := m.Reboot(t.Context(), provider.Ref{Token: r.Token}, "id"); provider.ClassOf(err) != provider.NotSupported {
		t.Errorf("Reboot of a broken instance: got error %v, want NotSupported", err)
	}
	m.Lose(r.Token)
	if _, err := m.Get(t.Context(), provider.Ref{Token: r.Token}); provider.ClassOf(err) != provider.NotFound {
		t.Errorf("Get of a lost instance: got error %v, want NotFound", err)
	}
	if _, err := m.Create(t.Context(), r); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("Create of a lost instance: got error %v, want Conflict", err)
	}
	m.Lose("nobody")
	m.Break("nobody", "")
}

// OnCall sees each call and can refuse it, and nothing is done then.
func TestMemoryOnCall(t *testing.T) {
	refused := provider.Errorf(provider.Internal, "not today")
	var seen []string
	m := &Memory{OnCall: func(_ context.Context, method, token string) error {
		seen = append(seen, method+" "+token)
		return refused
	}}
	r := request("a")
	if _, err := m.Create(t.Context(), r); !errors.Is(err, refused) || len(m.Instances()) != 0 {
		t.Errorf("Create: got error %v and %d instances, want the refusal and none", err, len(m.Instances()))
	}
	if err := m.Validate(t.Context(), r.Desired); !errors.Is(err, refused) {
		t.Errorf("Validate: got error %v, want the refusal", err)
	}
	if len(seen) != 2 || seen[0] != "Create "+r.Token || seen[1] != "Validate " {
		t.Errorf("got calls %q, want Create and Validate", seen)
	}
}

// A config says no more than one JSON object.
func TestMemoryConfig(t *testing.T) {
	for config, want := range map[string]provider.Class{
		"": "", `{}`: "", `{"apiVersion": "x/v1", "kind": "Y", "zone": "a"}`: "",
		`{"zones": "a"}`: provider.InvalidConfig, `{} {}`: provider.InvalidConfig, `[]`: provider.InvalidConfig, `{"zone": 1}`: provider.InvalidConfig,
	} {
		if err := new(Memory).Validate(t.Context(), provider.Desired{Config: []byte(config)}); provider.ClassOf(err) != want {
			t.Errorf("Validate of %q: got error %v, want class %q", config, err, want)
		}
	}
}
