// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/internal/tier"
)

// staticCPUs are configs whose kubelet gives CPUs away for good, and writes that down. A strict one writes down
// other CPUs.
func staticCPUs(strict bool) map[string]any {
	return map[string]any{
		"cpuManagerPolicy": "static", "kubeReserved": map[string]any{"cpu": "500m"},
		"cpuManagerPolicyOptions": map[string]any{"strict-cpu-reservation": fmt.Sprint(strict)},
	}
}

// withFields is a config with more fields.
func withFields(config, more map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range []map[string]any{config, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// diesLate are fields with which a kubelet ends after it has written its state: it enforces limits of a cgroup that
// is not there.
func diesLate() map[string]any {
	return map[string]any{
		"enforceNodeAllocatable": []string{"pods", "system-reserved"}, "systemReservedCgroup": "/belay-none",
		"systemReserved": map[string]any{"cpu": "100m"},
	}
}

// staticMemory are configs whose kubelet reserves memory of a NUMA node, and writes that down.
func (n *node) staticMemory(mebibytes int) map[string]any {
	size, threshold := fmt.Sprintf("%dMi", mebibytes), map[string]any{}
	evict, _ := n.kube.BaseConfig()["evictionHard"].(map[string]string)
	for k, v := range evict {
		threshold[k] = v
	}
	threshold["memory.available"] = size
	return map[string]any{
		"memoryManagerPolicy": "Static", "evictionHard": threshold,
		"reservedMemory": []any{map[string]any{"numaNode": 0, "limits": map[string]any{"memory": size}}},
	}
}

// policyOnDisk checks under which policy the kubelet has written a state file.
func (n *node) policyOnDisk(file, want string) error {
	text, err := os.ReadFile(filepath.Join(n.kube.Dir, "kubelet", file))
	if err != nil {
		return err
	}
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	if state.PolicyName != want {
		return fmt.Errorf("%s was written under %q, want %q", file, state.PolicyName, want)
	}
	return nil
}

// TestRealKubeletRollsItsStateBack has a kubelet write state on disk that no older config can start with, by
// configs that work and are left by a person, and by configs that die after they have written it. R-CS-18, L-CS-41.
func TestRealKubeletRollsItsStateBack(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	n := newNode(t)
	const cpu, memory = "cpu_manager_state", "memory_manager_state"
	steps := 0
	works := func(fields map[string]any, cpuPolicy, memoryPolicy string) {
		t.Helper()
		steps++
		fields = withFields(fields, map[string]any{"maxPods": 20 + steps})
		cm := n.push(fmt.Sprintf("works-%d", steps), "1s", fields)
		n.until(cm.Name, func() error { return n.answers(fields) })
		n.promoted(cm)
		n.until("the state of "+cm.Name, func() error { return n.policyOnDisk(cpu, cpuPolicy) })
		n.until("the state of "+cm.Name, func() error { return n.policyOnDisk(memory, memoryPolicy) })
		n.good = fields
	}
	dies := func(fields map[string]any) {
		t.Helper()
		steps++ // bytes that were rejected once are not tried again
		fields = withFields(withFields(fields, diesLate()), map[string]any{"maxPods": 20 + steps})
		cm := n.push(fmt.Sprintf("dies-%d", steps), "10m", fields)
		n.until("the end of "+cm.Name, func() error { return n.left(cm) })
		n.until("the way back from "+cm.Name, func() error { return n.answers(n.good) })
	}
	strict, lenient := staticCPUs(true), staticCPUs(false)
	works(nil, "none", "None")
	dies(strict)
	dies(n.staticMemory(101))
	works(strict, "static", "None")
	dies(nil)
	dies(lenient)
	works(lenient, "static", "None")
	works(n.staticMemory(101), "none", "Static")
	dies(n.staticMemory(201))
	works(n.staticMemory(201), "none", "Static")
	works(withFields(strict, n.staticMemory(101)), "static", "Static")
	dies(nil)
	works(nil, "none", "None")
}
