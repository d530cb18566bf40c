// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// lifecycle are the conditions of KEP-5683 that an admin sets for drains and maintenance.
var lifecycle = []string{"DrainInProgress", "Drained", "MaintenanceInProgress", "MaintenancePlanned"}

// lifecycleOf returns those of a Node that are True, with their reasons, "none" where all are False, and ""
// without any.
func (c *cluster) lifecycleOf(t *testing.T, name string) (found string, conditions map[string]corev1.NodeCondition) {
	t.Helper()
	node, err := c.admin.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	conditions = map[string]corev1.NodeCondition{}
	var out []string
	for _, condition := range node.Status.Conditions {
		if !slices.Contains(lifecycle, string(condition.Type)) {
			continue
		}
		conditions[string(condition.Type)] = condition
		if condition.Status == corev1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s for %s", condition.Type, condition.Reason))
		}
	}
	slices.Sort(out)
	switch {
	case len(conditions) == 0:
		return "", conditions
	case len(out) == 0:
		return "none", conditions
	}
	return strings.Join(out, ", "), conditions
}

// KEP-5683 on a real API server: a node is planned before its drain begins, with the time; then it is drained, and says
// so; and after its release no condition is left, and those of others are as they were.
func TestNodeTellsItsLifecycle(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "web")
	d, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{
		Cache: kube.CacheOptions{Node: node}, Drain: drain.Options{NodeConditions: true}})
	must(t, err)
	defer d.Close()
	r := evictAll("lifecycle")
	r.Node = node
	opens := time.Now().Add(time.Hour)
	r.Policy.Windows = []drain.Window{{From: opens}}
	reach := func(want string) map[string]corev1.NodeCondition {
		t.Helper()
		var last map[string]corev1.NodeCondition
		eventually(t, func() string {
			st, _, err := d.ReconcileRequest(t.Context(), r)
			must(t, err)
			var got string
			if got, last = c.lifecycleOf(t, node); got != want {
				return fmt.Sprintf("got %q at %s %s, want %q", got, st.Phase, st.Reason, want)
			}
			return ""
		})
		if want != "" && len(last) != len(lifecycle) {
			t.Errorf("got the conditions %v, want all of %v", last, lifecycle)
		}
		return last
	}
	planned := reach("MaintenancePlanned for MaintenanceWindow")["MaintenancePlanned"]
	when := opens.UTC().Format(time.RFC3339)
	if !strings.Contains(planned.Message, when) || time.Since(planned.LastTransitionTime.Time) > patience() {
		t.Errorf("got %+v, want the time %s and when it was planned", planned, when)
	}
	if got := d.View.Node(node); got.Spec.Unschedulable {
		t.Error("the node is cordoned before its window")
	}
	r.Policy.Windows = nil
	reach("DrainInProgress for AdminRequested, MaintenanceInProgress for AdminRequested")
	stop := c.playKubelet(t, node)
	defer stop()
	done := reach("Drained for DrainCompleted, MaintenanceInProgress for AdminRequested")
	if last := done["MaintenancePlanned"]; last.LastTransitionTime.Before(&planned.LastTransitionTime) {
		t.Errorf("got %+v, want a transition after %s", last, planned.LastTransitionTime)
	}
	r.Mode = drain.Release
	reach("")
}
