// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// listed is a Rollout as a controller sees it, without an API server.
func listed(t *testing.T, r *v1alpha1.Rollout) (stalled string, verb rollout.Verb) {
	t.Helper()
	r.Spec.Domain = "d"
	all, err := must1(kube.NewRollouts(dynamic.NewForConfigOrDie(&rest.Config{}), kube.RolloutsOptions{
		Domain: "d", List: func() []*v1alpha1.Rollout { return []*v1alpha1.Rollout{r} },
		Revision: func(string) (*v1alpha1.Revision, bool) { return nil, false },
	})).List(t.Context())
	if err != nil || len(all) != 1 || all[0].Invalid == nil {
		t.Fatalf("got %+v, %v, want the one, whose revision is not there", all, err)
	}
	return all[0].Stalled, all[0].Policy.Verb
}

// R-RO-32: what the condition Stalled says is what a controller can count.
func TestStalledIsSeen(t *testing.T) {
	for _, c := range []struct {
		status metav1.ConditionStatus
		want   string
	}{{metav1.ConditionTrue, v1alpha1.ReasonPausedTooLong}, {metav1.ConditionFalse, ""}, {"", ""}} {
		r := &v1alpha1.Rollout{}
		if c.status != "" {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: c.status, Reason: v1alpha1.ReasonPausedTooLong}}
		}
		if got, _ := listed(t, r); got != c.want {
			t.Errorf("%q: got %q, want %q", c.status, got, c.want)
		}
	}
}

// R-RO-19: of a Rollout that can't be followed the verb is seen, but not where its progress can't be read: carrying it out would write over that.
func TestVerbIsSeenIfItCanBeCarriedOut(t *testing.T) {
	r := &v1alpha1.Rollout{}
	r.Spec.Verb = &v1alpha1.Verb{Request: "q", Do: v1alpha1.Do(rollout.Abort)}
	if _, got := listed(t, r); got != (rollout.Verb{Request: "q", Do: rollout.Abort}) {
		t.Errorf("got %+v, want the abort", got)
	}
	r.Status.Progress = &v1alpha1.RolloutProgress{Nodes: "?"}
	if _, got := listed(t, r); got != (rollout.Verb{}) {
		t.Errorf("with progress that can't be read: got %+v, want none", got)
	}
}
