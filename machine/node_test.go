// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

func text(s string) *string { return &s }

// R-MA-17: a Node is given what has changed in the spec, and what has left it is taken away; what somebody else has written since stays, whether it was ours or
// not.
func TestNodeChange(t *testing.T) {
	dedicated := provider.Taint{Key: "dedicated", Value: "db", Effect: "NoSchedule"}
	given := &machine.Given{NodeSettings: provider.NodeSettings{
		Labels: map[string]string{"pool": "blue", "old": "1", "theirs-now": "1", "gone": "1"}, Annotations: map[string]string{"note": "a"},
		Taints: []provider.Taint{dedicated, {Key: "old", Effect: "NoSchedule"}},
	}, Source: "x"}
	n := machine.Node{Given: given, Labels: map[string]string{"pool": "blue", "old": "1", "theirs-now": "2", "kubernetes.io/os": "linux"}, Annotations: map[string]string{"note": "b"}}
	same := machine.Machine{}
	same.Spec.Node = given.NodeSettings
	if c := n.Change(same); len(c.Labels)+len(c.Annotations)+len(c.Drop)+len(c.Taints) != 0 {
		t.Errorf("R-MA-17: what others have changed is fought over: %+v", c)
	}
	var m machine.Machine
	m.Spec.Node = provider.NodeSettings{
		Labels: map[string]string{"pool": "green", "new": "1"}, Annotations: map[string]string{"note": "a"},
		Taints: []provider.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
	}
	want := machine.NodeChange{
		Labels: map[string]*string{"pool": text("green"), "new": text("1"), "old": nil}, Annotations: map[string]*string{},
		Drop: []provider.Taint{{Key: "old", Effect: "NoSchedule"}}, Taints: m.Spec.Node.Taints, Point: true, Given: machine.Given{NodeSettings: m.Spec.Node},
	}
	if diff := cmp.Diff(want, n.Change(m)); diff != "" {
		t.Errorf("R-MA-17: the change (-want +got):\n%s", diff)
	}
	m.Spec.ConfigSource = []byte(`{}`)
	if c := (machine.Node{}).Change(m); !c.Point || len(c.Labels) != 2 || len(c.Taints) != 1 || !c.Given.Equal(machine.GivenBy(m)) {
		t.Errorf("a Node without a record is given %+v", c)
	}
}

// R-MA-17: a second edit of the settings, made before the first is seen on the Node, is no affair of the provider either; an edit of what is the provider's is,
// and so is one after a digest that came from elsewhere.
func TestSettingsEditedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		second func(m *machine.Machine)
		asks   bool
	}{
		"settings":          {func(m *machine.Machine) { m.Spec.Node.Labels = map[string]string{"pool": "blue"} }, false},
		"what it is":        {func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"b"}`) }, true},
		"another digest":    {func(m *machine.Machine) { m.Digest, m.ProviderDigest = "another", "" }, true},
		"back to the first": {func(m *machine.Machine) { m.Spec.Node.Labels = nil }, false},
	} {
		l := newLife(t)
		l.v.Nodes[0].Given = &machine.Given{} // and so it stays, as by a cache that is behind
		l.v.Machine.Spec.Node.Labels = map[string]string{"pool": "green"}
		l.run(2 * time.Minute)
		if m := l.v.Machine; m.Digest != m.Spec.Digest() || m.ProviderDigest == "" {
			t.Errorf("%s: the digests are %q and %q after the first edit", name, m.Digest, m.ProviderDigest)
		}
		c.second(&l.v.Machine)
		l.v.Machine.Generation++
		l.run(2 * time.Minute)
		if asks := slices.Contains(l.did, string(machine.PlanUpdate)); asks != c.asks {
			t.Errorf("%s: after %v, a plan was asked for: %t, want %t", name, l.did, asks, c.asks)
		}
	}
}
