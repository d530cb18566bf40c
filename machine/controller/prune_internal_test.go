// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

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
