// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// A domain with more zones than the packed order has room for, and than 16 bits can count, is planned as any other one.
func TestMoreZonesThanBits(t *testing.T) {
	for _, zones := range []int{1<<14 + 2, 1<<15 + 2} {
		f := newFleet(t, 0)
		f.s.Nodes = make([]Node, 0, zones)
		for i := range zones {
			f.add(fmt.Sprintf("n%06d", i), map[string]string{zone: fmt.Sprintf("z%06d", i)})
		}
		f.s.Nodes[zones-1].Labels["belay.dev/canary"] = ""
		f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
		d, err := Plan(f.s, f.p, f.now)
		if got := doing(d, protocol.EventAdmit); err != nil || !slices.Equal(got, []string{f.s.Nodes[zones-1].Name, "n000000"}) {
			t.Errorf("%d zones: begun %v, want the canary and the first one; %v", zones, got, err)
		}
	}
}

// More groups and stages than can be numbered are refused, with the most that there may be.
func TestMoreGroupsAndStagesThanBits(t *testing.T) {
	f := newFleet(t, 1)
	groups := func(n int) (all []Group) {
		for i := range n {
			all = append(all, Group{Name: fmt.Sprint("g", i), Selector: labels.Nothing()})
		}
		all[n-1].Selector = labels.Everything()
		return all
	}
	stages := func(n int) (all []Stage) {
		for i := range n {
			all = append(all, Stage{Name: fmt.Sprint("s", i)})
		}
		return all
	}
	for _, c := range []struct {
		groups, stages int
		refused        string
	}{
		{4096, 1, ""},
		{4097, 1, "groups is 4097, want 4096 groups at most"},
		{40000, 1, "groups is 40000, want 4096 groups at most"},
		{1, 1024, ""},
		{1, 1025, "stages is 1025, want 1024 stages at most"},
	} {
		p := f.p
		p.Groups, p.Stages = groups(c.groups), stages(c.stages)
		d, err := Plan(f.s, p, f.now)
		switch {
		case c.refused == "" && (err != nil || len(doing(d, protocol.EventAdmit)) != 1):
			t.Errorf("%d groups, %d stages: begun %v, %v, want one node", c.groups, c.stages, doing(d, protocol.EventAdmit), err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%d groups, %d stages: error %v, want %q", c.groups, c.stages, err, c.refused)
		}
		if keys := p.Keys(f.s.Nodes[0]); len(keys) == 0 {
			t.Errorf("%d groups: no keys", c.groups)
		}
	}
}
