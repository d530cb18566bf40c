// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package oldkubelet

// The tag keeps the import out of every ordinary build; go mod tidy reads it all the same.
import _ "k8s.io/kubernetes/cmd/kubelet"
