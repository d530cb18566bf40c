// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// overlapping is [seen] with the rollout over zone a alone, and a younger one of v3 over all nodes, whose status names no node.
func overlapping(t *testing.T) *view.Seen {
	t.Helper()
	s := seen(t)
	s.Revisions = append(s.Revisions, v1alpha1.Revision{
		ObjectMeta: metav1.ObjectMeta{Name: "v3", CreationTimestamp: at(-time.Hour)},
		Spec:       v1alpha1.RevisionSpec{Digest: v1alpha1.OpaqueDigest("v3"), Opaque: "v3"},
	})
	s.Nodes[9].Status.Conditions[0].Status = corev1.ConditionTrue // so that there is room for one
	s.Rollouts[0].CreationTimestamp = at(-24 * time.Hour)
	s.Rollouts[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: "a"}}
	late := v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "a-late", UID: "r-2", Generation: 1, CreationTimestamp: at(-time.Hour)},
		Spec: v1alpha1.RolloutSpec{
			Domain: "default", Revision: pinned("v3"), Selector: &metav1.LabelSelector{}, Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt32(2)}},
		},
		Status: v1alpha1.RolloutStatus{Phase: "Running", ObservedGeneration: 1, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionOverlapping, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOverlap, LastTransitionTime: at(-time.Hour),
			Message: `6 nodes are selected that belong to rollout "fleet"`,
		}}},
	}
	s.Rollouts = append(s.Rollouts, late)
	return s
}

// R-RO-27: nodes that belong to an older rollout have no turn in a younger one, for whatever is said of it.
func TestOverlap(t *testing.T) {
	s := overlapping(t)
	late := &s.Rollouts[1]
	check(t, "overlap-status.txt", report.StatusOf(late, s.Revision, now()).Text())
	var all strings.Builder
	for _, name := range []string{"node-02", "node-04", "node-11"} {
		all.WriteString(report.WhyOf(s, name, s.Rollouts).Text() + "\n---\n")
	}
	check(t, "overlap-why.txt", all.String())
	v, err := s.Decide(late)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := v.Simulate(now(), rollout.Assumptions{Cycle: 30 * time.Minute, WorstCycle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "overlap-plan.txt", report.PlanOf(v, sim, now()).Text(false))
}

// R-RO-27: the owner is the one that the controller finds.
func TestOwnerIsTheControllers(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(*view.Seen)
		older, theirs int
	}{
		"the younger one yields":         {func(*view.Seen) {}, 0, 6},
		"by name if both are of one age": {func(s *view.Seen) { s.Rollouts[1].CreationTimestamp = s.Rollouts[0].CreationTimestamp }, 11, 0},
		"one that is only planned is the youngest": {func(s *view.Seen) {
			s.Rollouts[1].CreationTimestamp, s.Rollouts[1].UID = metav1.Time{}, "planned"
		}, 0, 6},
		"one that is being deleted selects none":       {func(s *view.Seen) { gone := at(0); s.Rollouts[0].DeletionTimestamp = &gone }, 0, 0},
		"one that can't be followed keeps its members": {func(s *view.Seen) { s.Rollouts[0].Spec.Revision.Name = "v9" }, -1, 12},
		"another domain is no concern":                 {func(s *view.Seen) { s.Rollouts[0].Spec.Domain = "other" }, 0, 0},
	} {
		s := overlapping(t)
		c.change(s)
		for i, want := range []int{c.older, c.theirs} {
			if want < 0 {
				continue
			}
			v, err := s.Decide(&s.Rollouts[i])
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Theirs) != want {
				t.Errorf("%s: %d nodes belong to others of rollout %s, want %d: %v", name, len(v.Theirs), s.Rollouts[i].Name, want, v.Theirs)
			}
		}
	}
}
