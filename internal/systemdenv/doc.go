// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package systemdenv runs a test under a systemd of its own, where one can run: as root on Linux, with systemd installed and the right to make
// namespaces and cgroups. The machine's own systemd, if there is one, sees nothing of it.
package systemdenv
