// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane pins the Kubernetes servers that the tests and the demo run.
//
// It holds no code: its go.mod and go.sum say which releases of etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubelet are built, and package internal/testenv/binaries builds them. The directories v1.34 to v1.36 pin
// the same Kubernetes programs of older minor releases, for make skew and for tests that exchange a kubelet. kwok and containerd
// have modules of their own, because they follow other releases of the Kubernetes libraries.
//
// The servers are of the newest Kubernetes minor whose modules are all published.
package controlplane
