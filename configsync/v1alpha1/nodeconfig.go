// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeConfig assigns a config to the node of the same name, and holds what that node reports.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nc,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.source.configMapRef.name`,description="ConfigMap that the spec asks for; empty is the local config"
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active.display`,description="Config in use"
// +kubebuilder:printcolumn:name="OK",type=string,JSONPath=`.status.conditions[?(@.type=="ConfigOK")].status`,description="Whether the config is OK; Unknown where it is unclear which is wanted"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="ConfigOK")].reason`,description="Cause in one word"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=="ConfigOK")].message`,description="Effect and cause"
// +kubebuilder:printcolumn:name="Assigned",type=string,priority=1,JSONPath=`.status.assigned.display`,description="Config that was last adopted"
// +kubebuilder:printcolumn:name="Last-Known-Good",type=string,priority=1,JSONPath=`.status.lastKnownGood.display`,description="Config to fall back to"
// +kubebuilder:printcolumn:name="Error",type=string,priority=1,JSONPath=`.status.error`,description="Last trouble in finding or fetching the wanted config"
type NodeConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the node should use. No spec means the local config.
	// +optional
	Spec NodeConfigSpec `json:"spec,omitempty"`

	// status is what the node reports.
	// +optional
	Status NodeConfigStatus `json:"status,omitempty"`
}

// NodeConfigSpec is what a node should use.
type NodeConfigSpec struct {
	// source of the config. Absent means the local config: the init config of the node, or its built-in defaults.
	// +optional
	Source *NodeConfigSource `json:"source,omitempty"`
}

// NodeConfigList is a list of NodeConfigs.
//
// +kubebuilder:object:root=true
type NodeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeConfig `json:"items"`
}
