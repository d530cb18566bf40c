// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kubelet

// fullDisk knows nothing of other systems than Linux, where kubelets with a container runtime on a Unix socket run.
func fullDisk(string) (why string, err error) { return "", nil }
