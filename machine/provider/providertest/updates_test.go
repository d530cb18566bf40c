// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// ask is a request to update the instance of a token.
func ask(token, config string, change func(*provider.Desired)) provider.UpdateRequest {
	d := provider.Desired{Config: []byte(config), Versions: provider.Versions{Kubelet: "v1.36.3"}}
	if change != nil {
		change(&d)
	}
	return provider.UpdateRequest{Ref: provider.Ref{Token: token}, Cluster: "c1", Digest: d.Digest(), Desired: d}
}

// R-MA-06: what changes decides between in place, replacement and a refusal, the config may say otherwise, and the worst of several counts. The
// plan says what is lost and whether work is disturbed, and an update does what was planned.
func TestPlan(t *testing.T) {
	type desired = provider.Desired
	c := newCloud(t)
	p := c.client()
	can := provider.AbilitiesOf(p)
	for n, row := range []struct {
		fields   string
		change   func(*desired)
		want     provider.Method
		reason   string
		disrupts bool
	}{
		{"", nil, provider.Nothing, "it is what is desired", false},
		{`"stopMilliseconds": 7`, nil, provider.InPlace, "nothing of it that runs changes", false},
		{"", func(d *desired) { d.Versions.Kubelet = "v1.36.4" }, provider.InPlace, "kubelet changes: InPlace", true},
		{"", func(d *desired) { d.Versions.Kubelet = "v1.35.0" }, provider.InPlace, "kubelet changes: InPlace", true},
		{"", func(d *desired) { d.Versions.Other = map[string]string{"kernel": "6.12"} }, provider.InPlace, "other changes: InPlace", true},
		{"", func(d *desired) { d.Versions.Runtime.Name = "cri-o" }, provider.Replace, "runtime changes: Replace", true},
		{"", func(d *desired) { d.Roles = []string{"etcd"} }, provider.InPlace, "roles changes: InPlace", false},
		{"", func(d *desired) { d.Node.Labels = map[string]string{"a": "b"} }, provider.InPlace, "node changes: InPlace", false},
		{"", func(d *desired) { d.Node.Taints = []provider.Taint{{Key: "a", Effect: "NoSchedule"}} }, provider.InPlace, "node changes: InPlace", false},
		{`"image": "next"`, nil, provider.Replace, "image changes: Replace", true},
		{`"image": "next", "updates": {"image": "InPlace"}`, nil, provider.InPlace, "image changes: InPlace", true},
		{`"image": "next", "updates": {"image": "Unsupported"}`, nil, provider.Unsupported, "image changes: Unsupported", false},
		{`"disks": [{"name": "root", "gib": 11}]`, nil, provider.Replace, "disks changes: Replace", true},
		{`"zone": "b"`, nil, provider.Replace, "zone changes: Replace", true},
		{`"group": "g"`, nil, provider.Replace, "group changes: Replace", true},
		{`"size": "large"`, nil, provider.Unsupported, "size changes: Unsupported", false},
		{`"size": "large", "image": "next"`, nil, provider.Unsupported, "image changes: Replace, size changes: Unsupported", false},
		{`"image": "next"`, func(d *desired) { d.Versions.Kubelet = "v1.36.4" }, provider.Replace, "image changes: Replace, kubelet changes: InPlace", true},
	} {
		i := create(t, p, want(n, config))
		doc := config
		if row.fields != "" {
			doc = with(row.fields)
		}
		u := ask(i.Token, doc, row.change)
		plan, err := can.Planner.Plan(t.Context(), u)
		if err != nil || plan.Method != row.want || plan.Reason != row.reason || plan.Disrupts != row.disrupts {
			t.Errorf("%s: got %+v, %v, want %s because %q, disruption is %t", row.fields, plan, err, row.want, row.reason, row.disrupts)
		}
		if lost := row.want == provider.Replace; lost != slices.Equal(plan.Lost, i.Disks) {
			t.Errorf("%s: got lost disks %+v, want the instance's only where it is replaced", row.fields, plan.Lost)
		}
		progress, err := can.Updater.Update(t.Context(), u)
		if row.want == provider.Replace || row.want == provider.Unsupported {
			wantClass(t, row.fields+": Update", err, provider.NotSupported)
		} else if err != nil || !progress.Done {
			t.Errorf("%s: Update: got %+v, %v, want it done", row.fields, progress, err)
		}
	}
}

// An update takes its time and then shows, is asked for again without beginning anew, and can be turned back meanwhile.
func TestUpdateTakesTime(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	can := provider.AbilitiesOf(p)
	slow := with(`"updateMilliseconds": 60000`)
	r := want(1, slow)
	i := create(t, p, r)
	next := ask(i.Token, slow, func(d *provider.Desired) { d.Versions.Kubelet = "v1.37.0" })
	update := func(u provider.UpdateRequest, done bool) {
		t.Helper()
		if progress, err := can.Updater.Update(t.Context(), u); err != nil || progress.Done != done {
			t.Errorf("Update: got %+v, %v, want done to be %t", progress, err, done)
		}
	}
	digest := func() string {
		t.Helper()
		got, err := p.Get(t.Context(), i.Ref())
		if err != nil || got.State != provider.Running || got.ProviderID != i.ProviderID {
			t.Fatalf("got %+v, %v, want it Running with ProviderID %q", got, err, i.ProviderID)
		}
		return got.Digest
	}
	update(next, false)
	c.pass(30 * time.Second)
	update(next, false)
	if got := digest(); got != r.Digest {
		t.Errorf("in the middle: got digest %q, want the old one, %q", got, r.Digest)
	}
	c.pass(30 * time.Second)
	if got := digest(); got != next.Digest {
		t.Errorf("a minute after it began: got digest %q, want the new one, %q", got, next.Digest)
	}
	update(next, true)
	h, _, err := c.host(t.Context(), i.Token)
	if err != nil || h.Desired.Versions.Kubelet != "v1.37.0" || h.Boots != 1 {
		t.Errorf("got kubelet %q, %d boots, %v, want v1.37.0 and 1", h.Desired.Versions.Kubelet, h.Boots, err)
	}
	back := ask(i.Token, slow, nil)
	update(back, false)
	update(next, false) // the change is turned back before it is done
	c.pass(time.Minute)
	if got := digest(); got != next.Digest {
		t.Errorf("turned back: got digest %q, want %q", got, next.Digest)
	}
}

// What was deleted is not updated: a plan is Conflict, and of what never was, or is another cluster's, NotFound.
func TestNoPlanForWhatLeaves(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	can := provider.AbilitiesOf(p)
	i := create(t, p, want(1, config))
	foreign := ask(i.Token, config, nil)
	foreign.Cluster = "c2"
	_, err := can.Planner.Plan(t.Context(), foreign)
	wantClass(t, "Plan in another cluster", err, provider.NotFound)
	_, err = can.Planner.Plan(t.Context(), ask("never", config, nil))
	wantClass(t, "Plan of what never was", err, provider.NotFound)
	if _, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1"}); err != nil {
		t.Fatal(err)
	}
	_, err = can.Updater.Update(t.Context(), ask(i.Token, with(`"image": "x"`), nil))
	wantClass(t, "Update of a retained instance", err, provider.Conflict)
}

// A config that can't be made is refused with the field, before there is any effect, by whatever takes one.
func TestBadConfigs(t *testing.T) {
	c := newCloud(t)
	p := c.client()
	can := provider.AbilitiesOf(p)
	for fields, want1 := range map[string]string{
		`"size": "huge"`:                    `size "huge"`,
		`"zone": "A"`:                       `zone "A"`,
		`"group": "a/b"`:                    `group "a/b"`,
		`"startMilliseconds": -1`:           "startMilliseconds is -1",
		`"stopMilliseconds": 3600001`:       "stopMilliseconds is 3600001",
		`"releaseMilliseconds": -1`:         "releaseMilliseconds is -1",
		`"updateMilliseconds": -1`:          "updateMilliseconds is -1",
		`"disks": [{"name": "", "gib": 1}]`: `disks[0].name ""`,
		`"disks": [{"name": "a", "gib": 1}, {"name": "a", "gib": 1}]`:                              `disks[1].name "a" is there twice`,
		`"disks": [{"name": "a", "gib": 0}]`:                                                       "disks[0].gib is 0",
		`"updates": {"colour": "InPlace"}`:                                                         `updates["colour"]`,
		`"updates": {"image": "Nothing"}`:                                                          `updates["image"] is "Nothing"`,
		`"updates": {"zone": "InPlace"}`:                                                           `updates["zone"] is InPlace`,
		`"updates": {"disks": "InPlace"}`:                                                          `updates["disks"] is InPlace`,
		`"disks": [` + strings.Repeat(`{"name": "a", "gib": 1},`, 16) + `{"name": "a", "gib": 1}]`: "disks has 17 entries",
	} {
		r := want(1, with(fields))
		_, create := p.Create(t.Context(), r)
		_, plan := can.Planner.Plan(t.Context(), ask(r.Token, with(fields), nil))
		_, adopt := can.Adopter.Adopt(t.Context(), provider.AdoptRequest{From: provider.Ref{Token: "x"}, As: r})
		_, capacity := can.Capacity.Capacity(t.Context(), r.Desired)
		for call, err := range map[string]error{
			"Create": create, "Plan": plan, "Adopt": adopt, "Capacity": capacity, "Validate": can.Validator.Validate(t.Context(), r.Desired),
			"Resize": can.Group.Resize(t.Context(), "g", 1, r.Desired),
		} {
			if provider.ClassOf(err) != provider.InvalidConfig || !strings.Contains(err.Error(), want1) {
				t.Errorf("%s with %s: got %v, want InvalidConfig with %q", call, fields, err, want1)
			}
		}
	}
	if i := c.inventory(); i.Instances+i.Disks+i.UsedTokens > 0 || len(i.Calls) > 0 {
		t.Errorf("got %+v, want nothing, and no call", i)
	}
}
