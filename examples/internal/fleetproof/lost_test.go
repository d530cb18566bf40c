// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/examples/internal/rollouts"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// lostAlone reports whether a rollout has frozen over nodes that have left the cluster while they were updated, and over nothing else. Each of them counts as a
// failure, as nobody can know whether the revision has taken it down; somebody who knows accepts that.
func lostAlone(st *v1alpha1.RolloutStatus, left map[string]bool) bool {
	if rollout.Phase(st.Phase) != rollout.Frozen || st.Counts == nil || st.Counts.Failed > 0 || st.Counts.Broken > 0 || len(st.History) == 0 {
		return false
	}
	failed := st.History[len(st.History)-1].FailedNodes
	for _, name := range failed {
		if !left[name] {
			return false
		}
	}
	return len(failed) > 0
}

// forgives is that somebody, who has taken nodes away, looks at a rollout: once for each freeze over nothing else.
func (s *stage) forgives(st *v1alpha1.RolloutStatus) {
	s.t.Helper()
	if !lostAlone(st, s.left) {
		return
	}
	request := fmt.Sprintf("lost-%d-%d", s.round, len(st.History[len(st.History)-1].FailedNodes))
	if st.HandledRequest == request || s.forgiven[request] {
		return
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"verb": v1alpha1.Verb{Request: request, Do: v1alpha1.Do(rollout.Accept)}}})
	must(s.t, err)
	client, err := dynamic.NewForConfig(s.env.Config())
	must(s.t, err)
	s.does("somebody accepts that nodes have left", func(ctx context.Context) error {
		_, err := client.Resource(v1alpha1.RolloutsResource).Patch(ctx, rollouts.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	s.forgiven[request] = true
}

// Nobody accepts what is more than that nodes have left.
func TestOnlyLostNodesAreForgiven(t *testing.T) {
	status := func(phase rollout.Phase, failed, broken int64, names ...string) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{
			Phase: v1alpha1.RolloutPhase(phase), Counts: &v1alpha1.RolloutCounts{Failed: failed, Broken: broken},
			History: []v1alpha1.HistoryEntry{{FailedNodes: []string{"before"}}, {FailedNodes: names}},
		}
	}
	for name, c := range map[string]struct {
		st   *v1alpha1.RolloutStatus
		want bool
	}{
		"two that have left":            {status(rollout.Frozen, 0, 0, "a", "b"), true},
		"it goes on":                    {status(rollout.Running, 0, 0, "a", "b"), false},
		"one of them is still there":    {status(rollout.Frozen, 0, 0, "a", "c"), false},
		"one that has its name failed":  {status(rollout.Frozen, 1, 0, "a"), false},
		"one that has its name broke":   {status(rollout.Frozen, 0, 1, "a"), false},
		"nobody is named":               {status(rollout.Frozen, 0, 0), false},
		"those of the round before":     {status(rollout.Frozen, 0, 0, "before"), false},
		"the controller has not looked": {&v1alpha1.RolloutStatus{}, false},
	} {
		if got := lostAlone(c.st, map[string]bool{"a": true, "b": true}); got != c.want {
			t.Errorf("%s: forgiven %t, want %t", name, got, c.want)
		}
	}
}
