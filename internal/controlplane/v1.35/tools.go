// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package olderservers

// The tag keeps the imports out of every ordinary build; go mod tidy reads them all the same.
import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
