// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane pins the Kubernetes servers that the tests and the demo run.
//
// It holds no code: its go.mod and go.sum say which releases of etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubelet are built, and package internal/testenv/binaries builds them. kwok has a module of
// its own in the directory kwok, since it follows another release of the Kubernetes libraries; so have, for tests that
// exchange what runs on a machine, a kubelet of an older minor in oldkubelet and a container runtime in containerd.
//
// The servers are of the newest Kubernetes minor whose modules are all published; the library itself may be of
// a newer one.
package controlplane
