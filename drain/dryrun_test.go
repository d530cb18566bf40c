// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A webhook with side effects cannot be asked in a dry run: its pod is not blocked, and the plan says that it is not
// proven.
func TestWebhookWithoutDryRunProvesNothing(t *testing.T) {
	pod := &corev1.Pod{}
	pod.UID = "u1"
	answer := Answer{Verdict: verdictRejected, Code: http.StatusBadRequest,
		Message: `admission webhook "x" does not support dry run`}
	answers := map[types.UID]Answer{"u1": answer}
	if refused := refusedOf([]*corev1.Pod{pod}, answers); len(refused) != 0 {
		t.Errorf("got %v refused, want none", refused)
	}
	r := Result{Nodes: []NodePlan{{Pods: []PodPlan{{PodRef: PodRef{UID: "u1"}, Action: Evict}}}}}
	noteUnproven(&r, answers)
	if got := r.Nodes[0].Pods[0].Message; !strings.HasPrefix(got, "not proven: admission webhook") {
		t.Errorf("got the message %q, want that it is not proven", got)
	}
	answers["u1"] = Answer{Verdict: verdictAdmissionDenied, Code: http.StatusForbidden}
	if refused := refusedOf([]*corev1.Pod{pod}, answers); len(refused) != 1 {
		t.Error("a denial does not hold the pod back")
	}
}
