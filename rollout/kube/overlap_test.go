// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What the controller finds of nodes that belong to other rollouts is a condition.
func TestOverlapShows(t *testing.T) {
	for _, c := range []struct {
		findings []rollout.Finding
		want     string
	}{
		{nil, "False " + v1alpha1.ReasonNoOverlap + " "},
		{[]rollout.Finding{{Check: "Quorum", Message: "q"}}, "False " + v1alpha1.ReasonNoOverlap + " "},
		{[]rollout.Finding{{Check: "Quorum", Message: "q"}, {Check: "Overlap", Message: "two"}}, "True " + v1alpha1.ReasonOverlap + " two"},
	} {
		d := rollout.Decisions{Phase: rollout.Running, Findings: c.findings}
		s, _ := v1alpha1.StatusOf(&v1alpha1.Rollout{}, v1alpha1.Observed{Decisions: d}, time.Unix(1e9, 0))
		is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionOverlapping)
		if is == nil || string(is.Status)+" "+is.Reason+" "+is.Message != c.want {
			t.Errorf("%+v: got %+v, want %s", c.findings, is, c.want)
		}
	}
}
