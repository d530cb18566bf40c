// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tier parts the tests in two tiers.
//
// make test needs Go, git, make and bash, and neither root nor packages of the system: its tests are pure, or run real control planes
// that are built from modules. A test that needs more (root, a kubelet, qemu, sshd, systemd, a browser, loop devices) calls [System] in its
// Test function, with what it needs. There it is skipped unless BELAY_TIER is "system", as make test-system sets it.
//
// No such test is lost: make test-system runs each Test function in which internal/archtest finds a call of System, fails if one of them
// did not run, and a rule of internal/archtest refuses a call anywhere else. What starts a kubelet, a virtual machine or a systemd calls
// [Require], so that a test without the mark fails everywhere.
package tier
