// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/belayproject/belay/internal/tier"
)

// emulator is the one for the machines' architecture.
const emulator = "qemu-system-x86_64"

// ErrUnsupported is returned where this machine cannot run virtual machines with two kernels.
var ErrUnsupported = errors.New("this machine cannot run virtual machines")

// requireVariable, set to anything, turns the skip of [Require] into a failure: for machines that are meant to have all that is needed.
const requireVariable = "BELAY_REQUIRE_QEMU"

// Supported returns nil where machines can run here and be given two kernels, or an [ErrUnsupported] that names everything that is missing.
func Supported() error {
	var reasons []error
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		reasons = append(reasons, fmt.Errorf("it needs linux/amd64, this is %s/%s", runtime.GOOS, runtime.GOARCH))
	}
	for _, program := range []string{emulator, "mkfs.ext4", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			reasons = append(reasons, fmt.Errorf("%q is not installed: run \"make qemu-deps\"", program))
		}
	}
	switch kernels, err := Kernels(); {
	case err != nil:
		reasons = append(reasons, err)
	case len(kernels) < 2:
		reasons = append(reasons, fmt.Errorf("there are %d kernels in the cache, it needs 2: run \"make qemu-deps\"", len(kernels)))
	}
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnsupported, errors.Join(reasons...))
}

// TB is the part of testing.TB that [Require] needs.
type TB interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Require skips a test, with the reasons, where machines can't run, or fails it where the environment variable BELAY_REQUIRE_QEMU is set.
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
