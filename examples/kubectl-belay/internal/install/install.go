// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	drainapi "github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/examples/manifests"
	machineapi "github.com/belayproject/belay/machine/v1alpha1"
	rolloutapi "github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// FieldManager owns the fields that this package sets.
	FieldManager = "kubectl-belay-install"

	callTimeout = 30 * time.Second
	servedAfter = time.Minute
	lookEvery   = 200 * time.Millisecond
)

// Options say what is installed, and how.
type Options struct {
	// CRDs leaves out everything but the CustomResourceDefinitions.
	CRDs bool
	// DryRun has the API server check the objects and store none.
	DryRun bool
	// Force takes over fields that another field manager owns.
	Force bool
	// Downgrade replaces definitions and roles that have more than ours. The API server then drops fields from objects.
	Downgrade bool
}

// What became of an object.
const (
	Created    = "created"
	Configured = "configured"
	Unchanged  = "unchanged"
)

// A Result is what became of one object. In a dry run it is what would become of it.
type Result struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Outcome   string `json:"outcome"`
}

// Objects returns what is installed, in the order in which it is applied.
func Objects(crdsOnly bool) ([]*unstructured.Unstructured, error) {
	files := slices.Concat(configapi.CRDs(), rolloutapi.CRDs(), machineapi.CRDs(), drainapi.CRDs())
	if !crdsOnly {
		access, err := manifests.Access()
		if err != nil {
			return nil, err
		}
		files = append(files, access...)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), 4096)
		for {
			u := &unstructured.Unstructured{}
			err := decoder.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("decoding an embedded manifest: %w", err)
			}
			if len(u.Object) > 0 {
				all = append(all, u)
			}
		}
	}
	return all, nil
}

// An installer applies objects to one cluster.
type installer struct {
	o      Options
	client dynamic.Interface
	mapper meta.RESTMapper
	// created are the namespaces that a dry run has not stored: the API server refuses objects in them.
	created map[string]bool
}

// Run applies the objects one after the other and reports each. It ends at the first that the API server refuses; applying again goes on there. It
// returns when the definitions are served.
func Run(ctx context.Context, config *rest.Config, o Options, report func(Result)) error {
	objects, err := Objects(o.CRDs)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	in := &installer{o, client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)), map[string]bool{}}
	for _, u := range objects {
		outcome, err := in.apply(ctx, u)
		var newer *NewerError
		if errors.As(err, &newer) {
			return fmt.Errorf("%w; %s", err, remedyFor(u.GetKind()))
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), err)
		}
		report(Result{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Outcome: outcome})
	}
	if o.DryRun {
		return nil
	}
	return in.waitUntilServed(ctx, objects)
}

// remedyFor says what to do where an object in the cluster has more than the one that would replace it.
func remedyFor(kind string) string {
	if kind == "ClusterRole" {
		return "delete the role first, or give --downgrade, which replaces all that is newer"
	}
	return "--downgrade replaces it: the API server then drops from objects what it lacks"
}

// apply applies one object and compares it with what was stored before.
func (in *installer) apply(ctx context.Context, u *unstructured.Unstructured) (outcome string, err error) {
	resource, err := in.resource(u)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	before, err := resource.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	absent := err != nil
	if in.o.DryRun && absent && in.created[u.GetNamespace()] {
		return Created, nil
	}
	if err := in.mayReplace(before, u); err != nil && !absent {
		return "", err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: in.o.Force}
	if in.o.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := resource.Apply(ctx, u.GetName(), u, options)
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w; --force-conflicts takes the fields over", err)
	case err != nil:
		return "", err
	case absent:
		if u.GetKind() == "Namespace" {
			in.created[u.GetName()] = true
		}
		return Created, nil
	case sameContent(before, after):
		return Unchanged, nil
	}
	return Configured, nil
}

// mayReplace returns a [NewerError] where the object before is newer and is not to be replaced.
func (in *installer) mayReplace(before, u *unstructured.Unstructured) error {
	if in.o.Downgrade || before == nil {
		return nil
	}
	return checkNewer(u, before)
}

func (in *installer) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	mapping, err := in.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return in.client.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return in.client.Resource(mapping.Resource), nil
}

// sameContent compares two versions of an object without what every write changes.
func sameContent(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, u := range []*unstructured.Unstructured{a, b} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// waitUntilServed returns when the API server serves all definitions.
func (in *installer) waitUntilServed(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		resource, err := in.resource(u)
		if err != nil {
			return err
		}
		err = wait.PollUntilContextTimeout(ctx, lookEvery, servedAfter, true, func(ctx context.Context) (bool, error) {
			stored, err := resource.Get(ctx, u.GetName(), metav1.GetOptions{})
			return err == nil && established(stored), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %q is served: %w", u.GetName(), err)
		}
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Established" && m["status"] == "True"
	})
}
