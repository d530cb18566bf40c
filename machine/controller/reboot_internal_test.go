// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// slowPower takes two calls for a reboot, and says when it wants the second one.
type slowPower struct {
	*machinetest.Memory
	asked int
}

func (s *slowPower) Reboot(context.Context, provider.Ref, string) (provider.Progress, error) {
	s.asked++
	return provider.Progress{Done: s.asked > 1, AfterSeconds: 90}, nil
}

// R-MA-30: a reboot that goes on is asked for again when the provider has said so, and no more once it is done.
func TestRebootIsAskedForWhenTheProviderSays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	power := &slowPower{Memory: &machinetest.Memory{}}
	g, err := NewGroups(GroupOptions{Groups: emptied{}, Provider: power, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	m := machine.Machine{Key: machine.Key{Namespace: "a", Name: "m"}, UID: "u", Status: machine.Status{Instance: &provider.Instance{Token: "t"}}}
	pass := func(asked int, after time.Duration) {
		t.Helper()
		p := &groupPass{g: g, ctx: t.Context(), namespace: "a", remedies: map[remedyKey]bool{}, group: Group{Machines: []machine.Machine{m}}}
		r := machine.Remedy{Choice: machine.Choice{Key: m.Key, UID: m.UID}, Kind: machine.RemedyReboot, ID: "r"}
		if err := p.remedy(r); err != nil || power.asked != asked || p.after != after {
			t.Errorf("R-MA-30: the provider was asked %d times, want %d; again after %v, want %v; %v", power.asked, asked, p.after, after, err)
		}
	}
	pass(1, 90*time.Second)
	now = now.Add(80 * time.Second)
	pass(1, 10*time.Second)
	now = now.Add(10 * time.Second)
	pass(2, 0)
	now = now.Add(time.Hour)
	pass(2, 0)
}
