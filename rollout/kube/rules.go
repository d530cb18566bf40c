// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// AgentRules are the rights of a node's agent, for a ClusterRole: it reads its own shadow and writes the status there, and reads what revisions
// are. Without a node the rules are for all of them, as a role has to be that all agents of a DaemonSet share; then package
// identity/nodeauth keeps each to its own.
func AgentRules(node string) []rbacv1.PolicyRule {
	var names []string
	if node != "" {
		names = []string{node}
	}
	shadows := v1alpha1.NodeShadowsResource.Resource
	return []rbacv1.PolicyRule{
		rule(v1alpha1.GroupVersion.Group, shadows, []string{"get", "list", "watch"}, names...),
		rule(v1alpha1.GroupVersion.Group, shadows+"/status", []string{"patch"}, names...),
		rule(v1alpha1.GroupVersion.Group, v1alpha1.RevisionsResource.Resource, []string{"get"}),
	}
}

// ControllerRules are the rights of a controller on what this package keeps, for a ClusterRole. The status of shadows is not among them.
func ControllerRules() []rbacv1.PolicyRule {
	group := v1alpha1.GroupVersion.Group
	return []rbacv1.PolicyRule{
		rule(group, v1alpha1.NodeShadowsResource.Resource, []string{"get", "list", "watch", "create", "patch", "delete"}),
		rule(group, v1alpha1.DisruptionLedgersResource.Resource, []string{"get", "list", "watch", "create", "update"}),
		rule(group, v1alpha1.RevisionsResource.Resource, []string{"list", "watch"}),
		rule(group, v1alpha1.RolloutsResource.Resource, []string{"list", "watch", "patch"}),
		rule(group, v1alpha1.RolloutsResource.Resource+"/status", []string{"patch"}),
		rule("", "nodes", []string{"get", "list", "watch", "patch"}),
	}
}

// HealthRules are the rights that a [Health] takes besides, for a ClusterRole.
func HealthRules() []rbacv1.PolicyRule {
	watch := []string{"list", "watch"}
	return []rbacv1.PolicyRule{
		rule("", "nodes", watch), rule("", "pods", watch),
		rule("apps", "deployments", watch), rule("apps", "statefulsets", watch), rule("apps", "daemonsets", watch),
	}
}

func rule(group, resource string, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: names}
}
