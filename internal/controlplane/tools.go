// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package controlplane

// The mains that internal/testenv/binaries builds. The tag keeps them out of every ordinary build; go mod tidy
// reads them all the same, and so keeps their modules in go.sum.
import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
