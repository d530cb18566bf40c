// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"os"
	"slices"
	"strings"
)

const (
	// Variable is the environment variable that turns the system tier on, with the value [On].
	Variable = "BELAY_TIER"
	// On is the value of Variable.
	On = "system"
	// Proofs is the value of Variable with which make proofs runs tests in whole.
	Proofs = "proofs"
	// Attribute is what a test has that is left to make test-system or, in whole or in part, to make proofs; its value
	// is [On] or Proofs.
	Attribute = "tier"
)

// A Need is what a test of the system tier needs. The Makefile installs the packages.
type Need string

// What tests need.
const (
	Root    Need = "root"
	Mount   Need = "the right to mount"
	Disks   Need = "loop devices, FUSE and mkfs"
	Kubelet Need = "containerd, runc and CNI plugins"
	Qemu    Need = "qemu, e2fsprogs and two kernels"
	SSHD    Need = "sshd and ssh"
	Systemd Need = "systemd, namespaces and cgroups"
	Browser Need = "chromium"
)

// T is the part of testing.T that this package needs.
type T interface {
	Helper()
	Attr(key, value string)
	Skip(args ...any)
	Fatal(args ...any)
}

// Enabled reports whether tests of the system tier run.
func Enabled() bool { return os.Getenv(Variable) == On }

// System marks the calling test, a Test function or a subtest that is written in one, as a test of the system tier, and skips it in the
// other tier. Where the system tier runs, the test goes on, and it may still be skipped because the machine lacks what it needs.
func System(t T, needs ...Need) {
	t.Helper()
	if Enabled() {
		return
	}
	t.Attr(Attribute, On)
	t.Skip("make test-system runs it, as it needs " + list(needs))
}

// LeaveToProofs leaves the calling test, a Test function or a subtest that is written in one, to make proofs. The
// rule is what it alone proves, or why the tests of make test prove it as well.
func LeaveToProofs(t T, rule string) {
	t.Helper()
	if os.Getenv(Variable) != Proofs {
		t.Attr(Attribute, Proofs)
		t.Skip("make proofs runs it: " + rule)
	}
}

// RunsWhole reports whether the calling test, a Test function or a subtest that is written in one, does all of its
// work, as make proofs has it. Elsewhere the test does a part that can fail for the same reasons: fewer nodes, seeds,
// rounds or cases.
func RunsWhole(t T) bool {
	t.Helper()
	if os.Getenv(Variable) == Proofs {
		return true
	}
	t.Attr(Attribute, Proofs)
	return false
}

// Require ends a test that has no call of [System]: it is for what starts kubelets, machines and the like.
func Require(t interface {
	Helper()
	Fatal(args ...any)
}) {
	t.Helper()
	if !Enabled() {
		t.Fatal("a test that needs more than the control plane calls tier.System first: see internal/tier")
	}
}

func list(needs []Need) string {
	var names []string
	for _, n := range needs {
		names = append(names, string(n))
	}
	slices.Sort(names)
	return strings.Join(names, "; ")
}
