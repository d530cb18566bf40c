// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/install"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Names of the ClusterRoles that [Install] makes, to be bound to the accounts of the two programs. They are bound to no one.
const (
	controllerRole = "belay-rollout-controller"
	agentRole      = "belay-rollout-agent"
)

// Install brings the definitions of Rollouts, Revisions, NodeShadows and DisruptionLedgers (v1alpha1.CRDs) and the ClusterRoles
// belay-rollout-controller and belay-rollout-agent to this version, by server-side apply, and waits until the kinds are served. It may be
// repeated. Where a newer version has installed a definition with more fields, or a role with more rights, it is an
// error that names what is missing, and that object stays as it is. ctx bounds the wait; each call has 10 seconds. The
// caller needs the rights of an administrator, which neither a controller nor an agent should have.
func Install(ctx context.Context, config *rest.Config) error {
	const remedy = "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags"
	if err := option.CheckRequired("rollout/kube.Install", "config", config, remedy); err != nil {
		return err
	}
	agent := append(AgentRules(""), rule("", "nodes", []string{"get"})) // for the UID of its Node
	set := install.Set{FieldManager: fieldManager, CRDs: v1alpha1.CRDs(), Roles: map[string][]rbacv1.PolicyRule{
		controllerRole: slices.Concat(ControllerRules(), HealthRules()), agentRole: agent,
	}}
	if err := set.Install(ctx, config); err != nil {
		return fmt.Errorf("rollout/kube.Install: %w", err)
	}
	return nil
}
