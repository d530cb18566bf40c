// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/internal/option"
)

// The group and version of the types, and the resources that serve them. They must not be assigned to.
var (
	GroupVersion                = schema.GroupVersion{Group: "belay.dev", Version: "v1alpha1"}
	MachinesResource            = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "machines"}
	MachineSetsResource         = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "machinesets"}
	MachineDeploymentsResource  = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "machinedeployments"}
	MachineHealthChecksResource = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "machinehealthchecks"}
)

// Kinds of the types.
const (
	MachineKind            = "Machine"
	MachineSetKind         = "MachineSet"
	MachineDeploymentKind  = "MachineDeployment"
	MachineHealthCheckKind = "MachineHealthCheck"
)

// AddToScheme makes the types known to s. It may be called again for the same scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := option.CheckRequired("machine/v1alpha1.AddToScheme", "s", s, "see runtime.NewScheme"); err != nil {
		return err
	}
	s.AddKnownTypes(GroupVersion, &Machine{}, &MachineList{}, &MachineSet{}, &MachineSetList{})
	s.AddKnownTypes(GroupVersion, &MachineDeployment{}, &MachineDeploymentList{}, &MachineHealthCheck{}, &MachineHealthCheckList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
