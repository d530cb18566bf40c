// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/manifests"
	"github.com/belayproject/belay/internal/install"
	machineapi "github.com/belayproject/belay/machine/v1alpha1"
	rolloutapi "github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// FieldManager owns the fields that this package sets.
	FieldManager = "kubectl-belay-install"

	// wholeTime bounds an installation.
	wholeTime = 5 * time.Minute
)

// Options say what is installed, and how.
type Options struct {
	// CRDs leaves out everything but the CustomResourceDefinitions.
	CRDs bool
	// DryRun has the API server check the objects and store none.
	DryRun bool
	// Force takes over fields that another field manager owns.
	Force bool
}

// A Result is what became of one object. In a dry run it is what would become of it.
type Result = install.Result

// Objects returns what is installed, in the order in which it is applied.
func Objects(crdsOnly bool) ([]*unstructured.Unstructured, error) {
	files := slices.Concat(configapi.CRDs(), rolloutapi.CRDs(), machineapi.CRDs())
	if !crdsOnly {
		access, err := manifests.Access()
		if err != nil {
			return nil, err
		}
		files = append(files, access...)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := install.Decode(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Run applies the objects one after the other and reports each. It ends at the first that the API server refuses; applying again goes on there. It
// returns when the definitions are served.
func Run(ctx context.Context, config *rest.Config, o Options, report func(Result)) error {
	objects, err := Objects(o.CRDs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	err = install.Apply(ctx, config, objects, install.Options{
		FieldManager: FieldManager, Force: o.Force, DryRun: o.DryRun, Report: report,
	})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w; --force-conflicts takes the fields over", err)
	}
	return err
}
