// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// MachineRules are the rights of [Run] in the cluster, or in the namespaces, of the machines. Secrets are those that machines name.
func MachineRules() []rbacv1.PolicyRule {
	machines := v1alpha1.MachinesResource.Resource
	return []rbacv1.PolicyRule{
		rule(v1alpha1.GroupVersion.Group, machines, "get", "list", "watch", "patch"),
		rule(v1alpha1.GroupVersion.Group, machines+"/status", "patch"),
		rule("", "secrets", "get"),
	}
}

// GroupRules are the rights that [RunGroups] takes besides.
func GroupRules() []rbacv1.PolicyRule {
	group := v1alpha1.GroupVersion.Group
	deployments, sets, checks := v1alpha1.MachineDeploymentsResource.Resource, v1alpha1.MachineSetsResource.Resource, v1alpha1.MachineHealthChecksResource.Resource
	return []rbacv1.PolicyRule{
		rule(group, v1alpha1.MachinesResource.Resource, "get", "list", "watch", "create", "update", "patch", "delete"),
		rule(group, sets, "get", "list", "watch", "create", "update", "patch", "delete"),
		rule(group, deployments, "get", "list", "watch", "patch"),
		rule(group, checks, "get", "list", "watch"),
		rule(group, deployments+"/status", "patch"), rule(group, sets+"/status", "patch"), rule(group, checks+"/status", "patch"),
	}
}

// NodeRules are the rights that both take in the workload cluster, for a ClusterRole. Those on NodeConfigs are needed where machines have a config source.
func NodeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "nodes", "list", "watch", "patch", "delete"),
		rule(v1alpha1.GroupVersion.Group, "nodeconfigs", "create", "patch"),
	}
}

// CargoRules are the rights of [Cargo] in the workload cluster, for a ClusterRole.
func CargoRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", "nodes", "get"), rule("", "pods", "list"), rule("", "persistentvolumes", "list")}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}
