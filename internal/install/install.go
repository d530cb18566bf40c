// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// callTime bounds each call.
	callTime = 10 * time.Second
	// servedEvery is the pause between two looks whether a kind is served. It is not watched: a person installs once.
	servedEvery = 100 * time.Millisecond
)

// A Set is what belongs to one package.
type Set struct {
	// FieldManager owns the fields that are written.
	FieldManager string
	// CRDs are CustomResourceDefinitions, one YAML document each.
	CRDs [][]byte
	// Roles are ClusterRoles by name.
	Roles map[string][]rbacv1.PolicyRule
}

// Install applies the definitions and roles, and waits until the API server answers requests for every kind that is defined.
func (s Set) Install(ctx context.Context, config *rest.Config) error {
	var objects []*unstructured.Unstructured
	for _, manifest := range s.CRDs {
		more, err := Decode(manifest)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		role, err := roleOf(name, s.Roles[name])
		if err != nil {
			return err
		}
		objects = append(objects, role)
	}
	return Apply(ctx, config, objects, Options{FieldManager: s.FieldManager, Force: true})
}

// Options say how objects are applied.
type Options struct {
	// FieldManager owns the fields that are written.
	FieldManager string
	// Force takes over fields that another field manager owns.
	Force bool
	// DryRun has the API server check the objects and store none.
	DryRun bool
	// Report, if not nil, is told what became of each object. That takes one more read of each.
	Report func(Result)
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

// Apply applies the objects one after the other, and ends at the first that the API server refuses; applying again goes
// on there. It returns when every kind that the objects define is served.
func Apply(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured, o Options) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	a := applier{Options: o, client: client, created: map[string]bool{}}
	for _, u := range objects {
		outcome, err := a.applyAndCompare(ctx, u)
		if err != nil {
			return fmt.Errorf("applying %s %q: %w", u.GetKind(), u.GetName(), err)
		}
		if o.Report != nil {
			o.Report(Result{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Outcome: outcome})
		}
	}
	if o.DryRun {
		return nil
	}
	for _, u := range objects {
		if u.GroupVersionKind().GroupKind() != definitionKind() {
			continue
		}
		if err := a.waitServed(ctx, u); err != nil {
			return fmt.Errorf("waiting for CustomResourceDefinition %q to be served: %w", u.GetName(), err)
		}
	}
	return nil
}

// Decode returns the objects of a file of YAML documents.
func Decode(file []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding a manifest: %w", err)
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}

// An applier applies objects to one cluster.
type applier struct {
	Options
	client dynamic.Interface
	// created are the namespaces that a dry run has not stored: the API server refuses objects in them.
	created map[string]bool
}

// applyAndCompare applies one object and, where that is asked for, compares it with what was stored before.
func (a applier) applyAndCompare(ctx context.Context, u *unstructured.Unstructured) (outcome string, err error) {
	if a.Report == nil {
		_, err := a.apply(ctx, u)
		return "", err
	}
	get, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	before, err := a.resource(u).Get(get, u.GetName(), metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	switch {
	case err != nil && !absent:
		return "", err
	case absent && a.DryRun && a.created[u.GetNamespace()]:
		return Created, nil
	}
	after, err := a.apply(ctx, u)
	switch {
	case err != nil:
		return "", err
	case absent:
		if u.GetKind() == "Namespace" {
			a.created[u.GetName()] = true
		}
		return Created, nil
	case isSame(before, after):
		return Unchanged, nil
	}
	return Configured, nil
}

func (a applier) apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: a.FieldManager, Force: a.Force}
	if a.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return a.resource(u).Apply(ctx, u.GetName(), u, options)
}

// resource is the client for the kind of an object. The kinds that are installed follow the rule of plurals, and an
// object with a namespace is of a kind that has them.
func (a applier) resource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if u.GetNamespace() == "" {
		return a.client.Resource(plural)
	}
	return a.client.Resource(plural).Namespace(u.GetNamespace())
}

// isSame compares two versions of an object without what every write changes.
func isSame(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, u := range []*unstructured.Unstructured{a, b} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

func definitionKind() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func roleOf(name string, rules []rbacv1.PolicyRule) (*unstructured.Unstructured, error) {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}
	return ToUnstructured(role)
}

// ToUnstructured returns an object with its kind as it is applied: without what the API server alone sets.
func ToUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", object, err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

// crd is the part of a definition that is read here. Its own type would bring the modules of an API server.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
}

// servedBy returns the resources that a definition has served.
func servedBy(definition *unstructured.Unstructured) ([]schema.GroupVersionResource, error) {
	var read crd
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &read); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	var all []schema.GroupVersionResource
	for _, v := range read.Spec.Versions {
		if v.Served {
			all = append(all, schema.GroupVersionResource{
				Group: read.Spec.Group, Version: v.Name, Resource: read.Spec.Names.Plural,
			})
		}
	}
	return all, nil
}

// waitServed waits until every served version of a definition can be listed. That the definition is established is not
// enough: the API server answers requests a moment later. One that is being deleted takes what is applied and goes all
// the same, with all objects of its kind: it is made anew when it is gone.
func (a applier) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	served, err := servedBy(definition)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, servedEvery, true, func(ctx context.Context) (bool, error) {
		if errors.Is(last, errGone) {
			if _, err := a.apply(ctx, definition); err != nil {
				return false, err
			}
		}
		err := a.checkServed(ctx, definition, served)
		if err == nil || ctx.Err() == nil { // a look that the end of ctx cuts short tells nothing new
			last = err
		}
		return err == nil, nil
	})
	if ctx.Err() != nil {
		return errors.Join(err, last)
	}
	return err
}

var errGone = errors.New("it does not exist")

func (a applier) checkServed(
	ctx context.Context, definition *unstructured.Unstructured, served []schema.GroupVersionResource,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := a.resource(definition).Get(ctx, definition.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return errGone
	case err != nil:
		return err
	case u.GetDeletionTimestamp() != nil:
		return fmt.Errorf("it is being deleted since %s, and is made anew when it is gone: "+
			"finalizers of its objects may hold it", u.GetDeletionTimestamp().UTC().Format(time.RFC3339))
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if !isEstablished(conditions) {
		return errors.New("it is not established")
	}
	for _, resource := range served {
		if _, err := a.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

func isEstablished(conditions []any) bool {
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" {
			return m["status"] == "True"
		}
	}
	return false
}
