// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machinenode proves machines on real Nodes: a Machine that is applied to a real API server becomes a real kubelet with a real containerd, of
// the versions that it asks for, and follows each edit of them. It needs Linux, root and what package nodetier asks for, and says so where it
// skips.
//
// The machines are those of provider local. [Boot] is what each of them runs first.
package machinenode
