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
	"github.com/belayproject/belay/machine/v1alpha1"
)

// ControllerRole is the name of the ClusterRole that [Install] makes, to be bound to the account of the controller. It is bound to
// no one. It is for machines that are in the cluster that they join.
const ControllerRole = "belay-machine-controller"

// Install brings the definitions of Machines, MachineSets, MachineDeployments and MachineHealthChecks (v1alpha1.CRDs) and the
// ClusterRole [ControllerRole] to this version, by server-side apply, and waits until the kinds are served. It may be
// repeated. Where a newer version has installed a definition with more fields, or the role with more rights, it is an
// error that names what is missing, and that object stays as it is. ctx bounds the wait; each call has 10 seconds. The
// caller needs the rights of an administrator, which a controller should not have.
func Install(ctx context.Context, config *rest.Config) error {
	const remedy = "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags"
	if err := option.CheckRequired("machine/kube.Install", "config", config, remedy); err != nil {
		return err
	}
	set := install.Set{FieldManager: FieldManager, CRDs: v1alpha1.CRDs(), Roles: map[string][]rbacv1.PolicyRule{
		ControllerRole: slices.Concat(MachineRules(), GroupRules(), NodeRules(), CargoRules()),
	}}
	if err := set.Install(ctx, config); err != nil {
		return fmt.Errorf("machine/kube.Install: %w", err)
	}
	return nil
}
