// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/belayproject/belay/internal/option"
)

// The group and version of the type, and the resource that serves it. They must not be assigned to.
var (
	GroupVersion             = schema.GroupVersion{Group: "belay.dev", Version: "v1alpha1"}
	NodeMaintenancesResource = schema.GroupVersionResource{
		Group: "belay.dev", Version: "v1alpha1", Resource: "nodemaintenances",
	}
)

// NodeMaintenanceKind is the kind of a [NodeMaintenance].
const NodeMaintenanceKind = "NodeMaintenance"

// AddToScheme makes the type known to s. It may be called again for the same scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := option.CheckRequired("drain/v1alpha1.AddToScheme", "s", s, "see runtime.NewScheme"); err != nil {
		return err
	}
	s.AddKnownTypes(GroupVersion, &NodeMaintenance{}, &NodeMaintenanceList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
