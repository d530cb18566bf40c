// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// emptied has nothing in any namespace.
type emptied struct{ Groups }

func (emptied) Read(context.Context, string, bool) (Group, error) { return Group{}, nil }

// R-MA-30: what is remembered of plans and remedies goes with what they were for; that of other namespaces stays.
func TestGroupsForget(t *testing.T) {
	t.Parallel()
	g, err := NewGroups(GroupOptions{Groups: emptied{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"a", "b"} {
		g.plans[planKey{namespace: namespace, uid: "u"}] = provider.Plan{}
		g.done[remedyKey{namespace, "r"}] = true
	}
	if _, err := g.Reconcile(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, other := g.plans[planKey{namespace: "b", uid: "u"}]; len(g.plans) != 1 || len(g.done) != 1 || !other || !g.done[remedyKey{"b", "r"}] {
		t.Errorf("R-MA-30: after a look at an empty namespace it remembers %v and %v", g.plans, g.done)
	}
}

// scaled has one deployment that the cluster-autoscaler scales, and keeps its annotations.
type scaled struct {
	Groups
	d      machine.Deployment
	writes int
}

func (s *scaled) Read(context.Context, string, bool) (Group, error) {
	return Group{Deployments: []machine.Deployment{s.d}}, nil
}

func (s *scaled) AnnotateDeployment(_ context.Context, _ machine.Choice, annotations map[string]*string) error {
	s.writes++
	for k, v := range annotations {
		if delete(s.d.Annotations, k); v != nil {
			s.d.Annotations[k] = *v
		}
	}
	return nil
}

// R-MA-11: a deployment that the autoscaler scales says what its Nodes would have, written once, and asked of the provider once.
func TestCapacityIsWritten(t *testing.T) {
	t.Parallel()
	s := &scaled{d: machine.Deployment{Key: machine.Key{Namespace: "a", Name: "d"}, UID: "u", Annotations: map[string]string{}}}
	s.d.Spec.Paused = true
	s.d.Spec.Template.Spec.Config = []byte(`{"image":"a","size":"l"}`)
	cloud := &machinetest.Memory{}
	g, err := NewGroups(GroupOptions{Groups: s, Provider: cloud})
	if err != nil {
		t.Fatal(err)
	}
	capacities := func(times int) {
		for range times {
			p := &groupPass{g: g, ctx: t.Context(), namespace: "a"}
			if err := p.read(false); err != nil {
				t.Fatal(err)
			}
			p.capacities()
		}
	}
	if capacities(2); s.writes != 0 {
		t.Errorf("R-MA-11: a deployment that nobody scales was written to: %v", s.d.Annotations)
	}
	s.d.Annotations[machine.MaxSizeAnnotation] = "3"
	capacities(5)
	if cpu := s.d.Annotations["capacity.cluster-autoscaler.kubernetes.io/cpu"]; cpu != "4" || s.writes != 1 || cloud.Calls()["Capacity"] != 1 {
		t.Errorf("R-MA-11: cpu %q after %d writes and the calls %v", cpu, s.writes, cloud.Calls())
	}
}
