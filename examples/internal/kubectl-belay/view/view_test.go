// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A rollout is picked without a name only if there is one, and who is wrong is told which there are.
func TestPick(t *testing.T) {
	of := func(names ...string) []v1alpha1.Rollout {
		var all []v1alpha1.Rollout
		for _, n := range names {
			all = append(all, v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: n}})
		}
		return all
	}
	for _, c := range []struct {
		all        []v1alpha1.Rollout
		name       string
		want, fail string
	}{
		{of("fleet"), "", "fleet", ""},
		{of("b", "a"), "b", "b", ""},
		{nil, "", "", "there is no Rollout"},
		{nil, "fleet", "", "there is no Rollout"},
		{of("b", "a"), "", "", "there are 2 rollouts, say which one: a, b"},
		{of("fleet", "gpu"), "flete", "", `there is no rollout "flete", only fleet, gpu`},
		{of("fleet-eu", "gpu"), "fleet", "", `near are fleet-eu`},
	} {
		r, err := view.Pick(c.all, c.name)
		switch {
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("picking %q: %v, want %q", c.name, err, c.fail)
		case c.fail == "" && (err != nil || r.Name != c.want):
			t.Errorf("picking %q: %v, %v", c.name, r, err)
		}
	}
}

// Names that are near are those that somebody may have mistyped, the nearest first, and never a wall of names.
func TestNear(t *testing.T) {
	names := []string{"worker-1", "worker-10", "worker-2", "gpu-1"}
	if got := view.Near("worker-11", names); !slices.Equal(got, []string{"worker-1", "worker-10", "worker-2"}) {
		t.Errorf("near worker-11 are %q", got)
	}
	if got := view.Near("database", names); got != nil {
		t.Errorf("near database are %q, want none", got)
	}
	if got := view.Near("w", slices.Repeat([]string{"worker"}, 100)); len(got) != 5 {
		t.Errorf("%d names are near, want 5", len(got))
	}
}

// Every reason has a meaning, and says what would change it.
func TestMeaning(t *testing.T) {
	for _, r := range []rollout.Reason{"Cap", "Frozen", rollout.ReasonBlocked, rollout.ReasonNoAgent} {
		if what, change := view.Meaning(r); what == "" || change == "" || strings.Contains(what, "no description") {
			t.Errorf("%s means %q, and changes with %q", r, what, change)
		}
	}
}
