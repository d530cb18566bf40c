// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e proves the main job on real components: the reference agent as a process of its own beside a real kubelet
// with containerd, and a real API server and etcd. It needs Linux, root and what package nodetier asks for, and says so
// where it skips.
package e2e
