// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/demo/internal/story"
)

func TestReport(t *testing.T) {
	remote := func(name string) *v1alpha1.Config {
		return &v1alpha1.Config{ConfigMapRef: &v1alpha1.ResolvedConfigMapRef{Name: name, UID: "uid-" + name, Digest: "sha256:" + name}}
	}
	local := &v1alpha1.Config{Local: v1alpha1.LocalInit}
	cond := corev1.NodeCondition{Type: "ConfigOK", Status: corev1.ConditionTrue, Reason: "r", Message: "m"}
	for _, c := range []struct {
		name   string
		status v1alpha1.NodeConfigStatus
		cond   corev1.NodeCondition
		want   story.Report
		err    error
	}{
		{"nothing yet", v1alpha1.NodeConfigStatus{}, cond, story.Report{}, errNoReport},
		{"no condition yet", v1alpha1.NodeConfigStatus{Active: local}, corev1.NodeCondition{}, story.Report{}, errNoReport},
		{"local", v1alpha1.NodeConfigStatus{Active: local, LastKnownGood: local}, cond, story.Report{
			Active: story.Ref{Name: "local"}, Good: story.Ref{Name: "local"}, Rejected: map[string]string{},
			Status: "True", Reason: "r", Message: "m",
		}, nil},
		{"on trial", v1alpha1.NodeConfigStatus{
			Active: remote("b"), LastKnownGood: remote("a"),
			Rejected: []v1alpha1.RejectedConfig{{ResolvedConfigMapRef: *remote("x").ConfigMapRef, Reason: "bad"}},
			Trial:    &v1alpha1.Trial{NeededSeconds: 4, HealthySeconds: 3, CountedStarts: 1, AllowedStarts: 2},
		}, cond, story.Report{
			Active:   story.Ref{Name: "b", UID: "uid-b", Digest: "sha256:b"},
			Good:     story.Ref{Name: "a", UID: "uid-a", Digest: "sha256:a"},
			Rejected: map[string]string{"uid-x": "bad"}, Status: "True", Reason: "r", Message: "m",
			Trial: &story.Trial{Healthy: 3 * time.Second, Needed: 4 * time.Second, Crashes: 1, Allowed: 2},
		}, nil},
	} {
		got := report(c.status, c.cond)
		if !errors.Is(got.Err, c.err) {
			t.Errorf("%s: got error %v, want %v", c.name, got.Err, c.err)
		}
		if diff := cmp.Diff(c.want, got.Report); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
