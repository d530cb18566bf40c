// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import _ "embed"

//go:generate controller-gen object:headerFile=boilerplate.go.txt paths=.
//go:generate controller-gen crd:headerFile=boilerplate.yaml.txt paths=. output:crd:dir=crd

//go:embed crd/belay.dev_nodemaintenances.yaml
var nodeMaintenances string

// CRDs returns the CustomResourceDefinitions of this package, one YAML document each. The caller owns the result.
func CRDs() [][]byte { return [][]byte{[]byte(nodeMaintenances)} }
