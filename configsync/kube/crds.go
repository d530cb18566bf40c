// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/install"
	"github.com/belayproject/belay/internal/option"
)

// Install brings the definition of NodeConfigs (v1alpha1.CRDs) to this version, by server-side apply, and waits until the kind is
// served. It may be repeated. Where a newer version has installed a definition with more fields, it is an error that
// names what is missing, and the definition stays as it is. ctx bounds the wait; each call has 10 seconds. The caller
// needs the rights of an administrator, which no node should have. The roles of nodes name their own objects: see
// [NodeConfigRules].
func Install(ctx context.Context, config *rest.Config) error {
	set := install.Set{FieldManager: FieldManager, CRDs: v1alpha1.CRDs()}
	check := option.For("configsync/kube.Install", nil)
	check.Require("config", config, "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags")
	if err := check.Err(); err != nil {
		return err
	}
	if err := set.Install(ctx, config); err != nil {
		return fmt.Errorf("configsync/kube.Install: %w", refused(err))
	}
	return nil
}
