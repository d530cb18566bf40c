// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/controller/page/pagetest"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A rollback is shown with the entry and the revision that it goes to, and only where the controller would carry it out.
func TestRollbackIsOffered(t *testing.T) {
	s := pagetest.Seen(t, 12, now())
	r := &s.Rollouts[0]
	entry := func(number int64, p v1alpha1.PinnedRevision, result v1alpha1.HistoryResult) v1alpha1.HistoryEntry {
		return v1alpha1.HistoryEntry{Number: number, RolloutTargets: v1alpha1.RolloutTargets{Revision: p}, Result: result}
	}
	var before v1alpha1.PinnedRevision
	for _, o := range s.Revisions {
		if o.Name != r.Spec.Revision.Name {
			before = v1alpha1.PinnedRevision{Name: o.Name, Digest: o.Spec.Digest}
		}
	}
	gone := v1alpha1.PinnedRevision{Name: "gone", Digest: "sha256:0"}
	for _, c := range []struct {
		first v1alpha1.PinnedRevision
		want  string
	}{{before, "kubectl belay rollback fleet --to=1"}, {gone, ""}, {r.Spec.Revision, ""}} {
		r.Status.History = []v1alpha1.HistoryEntry{entry(1, c.first, "Completed"), entry(2, r.Spec.Revision, "")}
		line, effect := "", ""
		for _, o := range page.Of(s).Rollouts["fleet"].Commands {
			if strings.Contains(o.Line, "rollback") {
				line, effect = o.Line, o.Effect
			}
		}
		if line != c.want || c.want != "" && !strings.Contains(effect, "revision "+before.Name+", entry 1") {
			t.Errorf("from %q on to %q: %q is offered, %q; want %q", c.first.Name, r.Spec.Revision.Name, line, effect, c.want)
		}
	}
}
