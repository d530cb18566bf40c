// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import _ "embed"

//go:generate controller-gen object:headerFile=boilerplate.go.txt paths=.
//go:generate controller-gen crd:headerFile=boilerplate.yaml.txt paths=. output:crd:dir=crd

var (
	//go:embed crd/belay.dev_machines.yaml
	machines string
	//go:embed crd/belay.dev_machinesets.yaml
	machineSets string
	//go:embed crd/belay.dev_machinedeployments.yaml
	machineDeployments string
	//go:embed crd/belay.dev_machinehealthchecks.yaml
	machineHealthChecks string
)

// CRDs returns the CustomResourceDefinitions of this package, one YAML document each. The caller owns the result.
func CRDs() [][]byte {
	return [][]byte{[]byte(machines), []byte(machineSets), []byte(machineDeployments), []byte(machineHealthChecks)}
}
