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

// L-CS-34: a pod that has filled more than its own limit allows is evicted under every config.
func TestPodsOverTheirOwnLimitDoNotCount(t *testing.T) {
	for message, want := range map[string]int{
		`Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. `: 0,
		`Container c exceeded its local ephemeral storage limit "4Gi". `:                 0,
		`Usage of EmptyDir volume "logs" exceeds the limit "30Mi". `:                     0,
		`The node was low on resource: memory. Threshold quantity: 100Mi. `:              1,
		`The node had condition: [DiskPressure]. `:                                       1,
		``: 1,
	} {
		before, pods := lostPods("Evicted", message, 1, 5)
		if got := (&podsProbe{}).podsMissing("b", before, pods, false); len(got) != want {
			t.Errorf("%q: %q, want %d pods counted", message, got, want)
		}
	}
}

// L-CS-34: a pod that was lost in an earlier run of the config, or under the fallback, does not count in the next run.
func TestOnlyLossesOfThisRunCount(t *testing.T) {
	p := &podsProbe{}
	before, pods := lostPods("Evicted", "The node was low on resource: memory.", 1, 5)
	if got := p.podsMissing("b", before, pods, false); len(got) != 1 {
		t.Errorf("the first run: %q, want the pod that it has lost", got)
	}
	if got := p.podsMissing("b", before, pods[1:], false); len(got) != 1 {
		t.Errorf("once its owner has deleted it: %q, want it still", got)
	}
	if got := p.podsMissing("b", before, pods, true); len(got) != 0 {
		t.Errorf("under the fallback: %q, want nothing", got)
	}
	if got := p.podsMissing("b", before, pods, false); len(got) != 0 {
		t.Errorf("the next run: %q, want nothing: it has lost no pod yet", got)
	}
	_, pods = lostPods("Evicted", "The node was low on resource: memory.", 2, 4)
	if got := p.podsMissing("b", before, pods, false); len(got) != 1 {
		t.Errorf("a pod that the next run loses: %q, want that one", got)
	}
}
