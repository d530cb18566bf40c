// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

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
