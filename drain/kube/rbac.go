// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	_ "embed" // for the manifest
)

//go:embed rbac.yaml
var rbac []byte

// RBAC returns a manifest in YAML with a ClusterRole and a Role that hold all rights that a drain needs, and comments that say which of
// them goes with which option.
func RBAC() []byte { return bytes.Clone(rbac) }
