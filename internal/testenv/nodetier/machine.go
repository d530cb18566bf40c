// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/testenv"
)

// fixedPlaces are directories that kubelet, containerd and the CNI library make whatever their configuration says.
// Parents come before their children.
var fixedPlaces = []string{
	"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/var/log/containers", "/var/lib/cni", "/var/lib/cni/results",
	"/run/containerd", "/run/containerd/s",
}

// kernelSettings are those that the kubelet and the ptp plugin change for the whole machine.
var kernelSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
}

// undoPatience is how long a tier waits for the traces of a killed one: its name was free at once, but its reaper
// needs a moment. What is still there then has no reaper any more.
const undoPatience = 30 * time.Second

// Reserve keeps this machine, as far as kubelets go, for a control plane until that ends: it waits, until ctx ends, while a kubelet of another one runs
// here, and has what a kubelet changes for the whole machine undone in the end.
func Reserve(ctx context.Context, env *testenv.Env) error {
	if err := env.Exclusive(ctx, "node-tier"); err != nil {
		return err
	}
	if err := awaitUndone(ctx, env); err != nil {
		return err
	}
	return recordMachine(env)
}

// awaitUndone waits until no other owner on this machine has something to undo.
func awaitUndone(ctx context.Context, env *testenv.Env) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(undoPatience)
	for {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(env.Dir()), "belay-*", undoFile))
		if err != nil || len(files) == 0 {
			return err
		}
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q to be undone: %w", files, ctx.Err())
		case <-ticker.C:
		}
	}
}

// undoFile is the name, in the control plane's directory, that the reaper knows.
const undoFile = "undo"

// recordMachine writes down how the machine was, for the reaper to restore it: the directories that are absent now
// and the values of kernel settings.
func recordMachine(env *testenv.Env) error {
	var undo strings.Builder
	for _, dir := range fixedPlaces {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&undo, "remove %s\n", dir)
		}
	}
	for _, name := range kernelSettings {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			continue // this kernel has no such setting, so nothing changes it
		}
		fmt.Fprintf(&undo, "sysctl %s %s\n", name, strings.TrimSpace(string(value)))
	}
	if err := os.WriteFile(filepath.Join(env.Dir(), undoFile), []byte(undo.String()), 0o600); err != nil {
		return fmt.Errorf("recording the state of the machine: %w", err)
	}
	return nil
}
