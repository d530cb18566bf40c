// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Gates that end a start by what is on the machine.
const (
	dieWithoutFile = "DieWithoutFile"
	noRuntime      = "NoRuntime"
	poisonState    = "PoisonState"
)

// dependOnMachine fails where what the config names is not on the machine.
func dependOnMachine(c *v1beta1.KubeletConfiguration) error {
	if c.FeatureGates[dieWithoutFile] {
		if _, err := os.Stat(c.TLSCertFile); err != nil {
			return fmt.Errorf("failed to initialize file based certificate manager: %w", err)
		}
	}
	if !c.FeatureGates[noRuntime] {
		return nil
	}
	runtime, err := net.DialTimeout("unix", strings.TrimPrefix(c.ContainerRuntimeEndpoint, "unix://"), time.Second)
	if err != nil {
		return fmt.Errorf("validate CRI v1 runtime API: %w", err)
	}
	return runtime.Close()
}

// bindState reads the state files, or writes them, and fails where one was written under another policy.
func bindState(root string, c *v1beta1.KubeletConfiguration) error {
	if root == "" {
		return nil
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	for _, s := range []struct{ file, policy string }{
		{"cpu_manager_state", cmp.Or(c.CPUManagerPolicy, "none")},
		{"memory_manager_state", cmp.Or(c.MemoryManagerPolicy, "None")},
	} {
		if err := bindFile(filepath.Join(root, s.file), s.policy); err != nil {
			return err
		}
	}
	poison := filepath.Join(root, "poison_state")
	if c.FeatureGates[poisonState] {
		return os.WriteFile(poison, []byte("poison"), 0o600)
	}
	if _, err := os.Stat(poison); err == nil {
		return fmt.Errorf("%s was written with %s", poison, poisonState)
	}
	return nil
}

func bindFile(path, policy string) error {
	type state struct {
		PolicyName string `json:"policyName"`
		// Checksum stands for one that is wrong; the files that this program writes have none.
		Checksum int `json:"checksum,omitempty"`
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = json.Marshal(state{PolicyName: policy}); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("could not restore state from checkpoint: %w", err)
	}
	if s.Checksum != 0 {
		return fmt.Errorf("could not restore state from checkpoint: checkpoint is corrupted, please drain this node and "+
			"delete the checkpoint file %q before restarting Kubelet", path)
	}
	if s.PolicyName != policy {
		return fmt.Errorf("configured policy %q differs from state checkpoint policy %q, please drain this node and "+
			"delete %q",
			policy, s.PolicyName, path)
	}
	return nil
}
