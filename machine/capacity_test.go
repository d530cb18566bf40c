// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

const capacityOf = "capacity.cluster-autoscaler.kubernetes.io/"

// R-MA-11: what a Node would have is said in the autoscaler's words; without cpu and memory nothing is.
func TestCapacityAnnotations(t *testing.T) {
	n := provider.NodeSettings{Labels: map[string]string{"b": "2", "a": "1"}, Taints: []provider.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}}
	got := machine.CapacityAnnotations(map[string]string{"cpu": "4", "memory": "16Gi", "ephemeral-storage": "20Gi", "pods": "60", "nvidia.com/gpu": "2", "odd": "1"}, n)
	want := map[string]string{
		capacityOf + "cpu": "4", capacityOf + "memory": "16Gi", capacityOf + "ephemeral-disk": "20Gi", capacityOf + "maxPods": "60",
		capacityOf + "gpu-type": "nvidia.com/gpu", capacityOf + "gpu-count": "2", capacityOf + "labels": "a=1,b=2", capacityOf + "taints": "k=v:NoSchedule",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("R-MA-11: annotations (-want +got):\n%s", diff)
	}
	if got := machine.CapacityAnnotations(map[string]string{"cpu": "4"}, n); len(got) != 0 {
		t.Errorf("R-MA-11: without memory: %v", got)
	}
}

// R-MA-11: what we have written follows the template and goes with it; what somebody else has written stays, and nothing is written twice.
func TestCapacityChange(t *testing.T) {
	is := map[string]string{capacityOf + "memory": "1Gi"}
	apply := func(want map[string]string) int {
		change := machine.CapacityChange(is, want)
		for k, v := range change {
			if delete(is, k); v != nil {
				is[k] = *v
			}
		}
		return len(change)
	}
	small := map[string]string{capacityOf + "cpu": "1", capacityOf + "memory": "4Gi", capacityOf + "gpu-count": "1"}
	if apply(small); is[capacityOf+"cpu"] != "1" || is[capacityOf+"memory"] != "1Gi" || is[capacityOf+"gpu-count"] != "1" {
		t.Errorf("R-MA-11: the annotations are %v", is)
	}
	if n := apply(small); n != 0 {
		t.Errorf("R-MA-11: the same is written again: %d entries", n)
	}
	large := map[string]string{capacityOf + "cpu": "4", capacityOf + "memory": "16Gi"}
	if apply(large); is[capacityOf+"cpu"] != "4" || is[capacityOf+"memory"] != "1Gi" || is[capacityOf+"gpu-count"] != "" {
		t.Errorf("R-MA-11: of another template the annotations are %v", is)
	}
	is[capacityOf+"cpu"] = "3"
	if apply(small); is[capacityOf+"cpu"] != "3" {
		t.Errorf("R-MA-11: what somebody has written is %q", is[capacityOf+"cpu"])
	}
	if apply(nil); is[machine.CapacityAnnotation] != "" || is[capacityOf+"memory"] != "1Gi" {
		t.Errorf("R-MA-11: in the end there is %v", is)
	}
}
