// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package containerd pins a container runtime of another release than the one that Debian has, for tests that exchange it. It holds no code.
package containerd
