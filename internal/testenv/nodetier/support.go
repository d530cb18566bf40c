// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/tier"
)

// ErrUnsupported is returned where this machine cannot run a kubelet.
var ErrUnsupported = errors.New("this machine cannot run a real kubelet")

// requireVariable, set to anything, turns the skip of [Require] into a failure: for machines that are meant to have
// all that is needed.
const requireVariable = "BELAY_REQUIRE_KUBELET"

// plugins are the CNI plugins that pods are attached with.
var plugins = []string{"ptp", "host-local", "loopback"}

// Supported returns nil where a kubelet can run here, or an [ErrUnsupported] that names everything that is missing.
func Supported() error {
	var reasons []error
	if runtime.GOOS != "linux" {
		reasons = append(reasons, fmt.Errorf("it needs Linux, this is %s", runtime.GOOS))
	}
	if os.Geteuid() != 0 {
		reasons = append(reasons, fmt.Errorf("it needs root, this is user %d", os.Geteuid()))
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			reasons = append(reasons, fmt.Errorf("%q is not installed: run \"make kubelet-deps\"", program))
		}
	}
	if _, err := PluginDir(); err != nil {
		reasons = append(reasons, err)
	}
	if _, err := os.Stat("/var/lib/kubelet/config.yaml"); err == nil {
		reasons = append(reasons, errors.New("it is a node already: /var/lib/kubelet/config.yaml exists"))
	}
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnsupported, errors.Join(reasons...))
}

// PluginDir returns the directory with the CNI plugins: Debian's, or the one that upstream's archives use.
func PluginDir() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		missing := ""
		for _, plugin := range plugins {
			if info, err := os.Stat(filepath.Join(dir, plugin)); err != nil || !info.Mode().IsRegular() {
				missing = plugin
			}
		}
		if missing == "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("CNI plugins %q are not installed: run \"make kubelet-deps\"", plugins)
}

// TB is the part of testing.TB that this package needs.
type TB interface {
	testenv.TB
	Skip(args ...any)
}

// Require skips a test, with the reasons, where this machine cannot run a kubelet, or fails it where the
// environment variable BELAY_REQUIRE_KUBELET is set.
func Require(tb TB) {
	tb.Helper()
	tier.Require(tb)
	err := Supported()
	if err == nil {
		return
	}
	if os.Getenv(requireVariable) != "" {
		tb.Fatal(err)
	}
	tb.Skip(err)
}

// Start starts a tier for a test, which ends with env, on a machine that [Require] accepts. Calling Require before
// the control plane is started saves the time of that where the test is skipped.
func Start(tb TB, env *testenv.Env) *Tier {
	tb.Helper()
	Require(tb)
	tier, err := New(tb.Context(), env)
	if err != nil {
		tb.Fatal("starting the node tier:", err)
	}
	return tier
}
