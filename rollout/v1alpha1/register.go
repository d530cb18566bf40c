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
	GroupVersion              = schema.GroupVersion{Group: "belay.dev", Version: "v1alpha1"}
	NodeShadowsResource       = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "nodeshadows"}
	DisruptionLedgersResource = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "disruptionledgers"}
	RevisionsResource         = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "revisions"}
	RolloutsResource          = schema.GroupVersionResource{Group: "belay.dev", Version: "v1alpha1", Resource: "rollouts"}
)

// Kinds of the types.
const (
	NodeShadowKind       = "NodeShadow"
	DisruptionLedgerKind = "DisruptionLedger"
	RevisionKind         = "Revision"
	RolloutKind          = "Rollout"
)

// AddToScheme makes the types known to s. It may be called again for the same scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := option.CheckRequired("rollout/v1alpha1.AddToScheme", "s", s, "see runtime.NewScheme"); err != nil {
		return err
	}
	s.AddKnownTypes(GroupVersion, &NodeShadow{}, &NodeShadowList{}, &DisruptionLedger{}, &DisruptionLedgerList{}, &Revision{}, &RevisionList{})
	s.AddKnownTypes(GroupVersion, &Rollout{}, &RolloutList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
