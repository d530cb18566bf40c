// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

// NodeConfigRules are the rights that [NodeConfigSource] and [NewStatusReporter] need, for a ClusterRole.
func NodeConfigRules(node string) []rbacv1.PolicyRule {
	group, resource := v1alpha1.GroupVersion.Group, v1alpha1.NodeConfigsResource.Resource
	return []rbacv1.PolicyRule{
		rule(group, resource, []string{"get", "list", "watch"}, node),
		rule(group, resource+"/status", []string{"patch"}, node),
	}
}

// NodeSourceRules are the rights that [NewAnnotationSource] and [NewLegacySource] need, for a ClusterRole.
func NodeSourceRules(node string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", nodes.Resource, []string{"get", "list", "watch"}, node)}
}

// NodeConditionRules are the rights that [NewNodeConditionReporter] needs, for a ClusterRole.
func NodeConditionRules(node string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", nodes.Resource, []string{"get"}, node),
		rule("", nodes.Resource+"/status", []string{"patch"}, node),
	}
}

// ConfigMapRules are the rights that [NewConfigMapFetcher] needs for the named ConfigMaps, for a Role in their namespace. Without names
// they are for every ConfigMap there, which is what nodes need whose configs get a new name with each version. Listing and
// watching are needed for configs that are followed only.
func ConfigMapRules(names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", configMaps.Resource, []string{"get", "list", "watch"}, names...)}
}

func rule(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
}
