// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// lostPods are pods of a baseline that have failed for a reason; before has them and others that are well.
func lostPods(reason, message string, lost, others int) (before map[string]string, pods []podState) {
	before = map[string]string{}
	for i := range lost + others {
		p := podState{uid: fmt.Sprint(i), name: fmt.Sprintf("ns/p%d", i), phase: corev1.PodRunning, ready: true}
		before[p.uid] = p.name
		if i < lost {
			p.phase, p.reason, p.message, p.ready = corev1.PodFailed, reason, message, false
		}
		pods = append(pods, p)
	}
	return before, pods
}

// L-CS-34: what any restart of a kubelet can do to a pod convicts no config of a node with few pods.
func TestFewPodsThatAnyRestartEndsConvictNothing(t *testing.T) {
	for _, c := range []struct{ lost, others, want int }{
		{1, 0, 0}, {2, 0, 0}, {2, 2, 0}, {3, 0, 3}, {3, 3, 3}, {3, 4, 0}, {10, 10, 10},
	} {
		before, pods := lostPods("UnexpectedAdmissionError", "a device is not there yet", c.lost, c.others)
		if got := (&podsProbe{}).podsMissing("b", before, pods, false); len(got) != c.want {
			t.Errorf("%d of %d pods lost: %q, want %d of them counted", c.lost, c.lost+c.others, got, c.want)
		}
	}
}
