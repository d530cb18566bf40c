// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package containerd

// The tag keeps the imports out of every ordinary build; go mod tidy reads them all the same.
import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
