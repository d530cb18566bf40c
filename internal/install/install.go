// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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
	// callTime bounds the reads and writes of one object, with retries, and one look whether its kind is served.
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

// Install applies the definitions and roles, and waits until the API server answers requests for every kind that is
// defined. Before it replaces an object, it compares the versions and field names of a definition, and the rights of a
// role; it does not compare validation rules. An object with more than ours is a [NewerError] and stays as it is.
// Install stops there: objects before it are applied, objects after it are not.
func (s Set) Install(ctx context.Context, config *rest.Config) error {
	var objects []*unstructured.Unstructured
	for _, manifest := range s.CRDs {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &u.Object); err != nil {
			return fmt.Errorf("decoding a CustomResourceDefinition: %w", err)
		}
		objects = append(objects, u)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		role, err := roleOf(name, s.Roles[name])
		if err != nil {
			return err
		}
		objects = append(objects, role)
	}
	return applyAll(ctx, config, applier{manager: s.FieldManager, keepNewer: true}, objects)
}

// Apply applies the objects one after the other, and takes over fields that another field manager owns. It ends at the
// first that the API server refuses; applying again goes on there. It returns when every kind that the objects define
// is served. It does not look at what it replaces.
func Apply(ctx context.Context, config *rest.Config, manager string, objects []*unstructured.Unstructured) error {
	return applyAll(ctx, config, applier{manager: manager}, objects)
}

func applyAll(ctx context.Context, config *rest.Config, a applier, objects []*unstructured.Unstructured) error {
	var err error
	if a.client, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	for _, u := range objects {
		if err := a.apply(ctx, u); err != nil {
			return err
		}
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

// An applier applies objects to one cluster.
type applier struct {
	client  dynamic.Interface
	manager string
	// keepNewer refuses to narrow an object, see checkNewer.
	keepNewer bool
}

func (a applier) apply(ctx context.Context, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: a.manager, Force: true}
	for {
		checked, err := a.checkLive(ctx, u)
		if err != nil {
			return err
		}
		_, err = a.clientFor(u).Apply(ctx, u.GetName(), checked, options)
		if apierrors.IsConflict(err) && checked.GetResourceVersion() != "" {
			continue // it has changed since the check
		}
		if err != nil {
			return fmt.Errorf("applying %s %q: %w", u.GetKind(), u.GetName(), err)
		}
		return nil
	}
}

// checkLive returns u as it may be applied: over exactly the object of the cluster that it does not narrow.
func (a applier) checkLive(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !a.keepNewer {
		return u, nil
	}
	live, err := a.clientFor(u).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return u, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	if err := checkNewer(u, live); err != nil {
		return nil, fmt.Errorf("%w: %s", err, remedyFor(u.GetKind()))
	}
	u = u.DeepCopy()
	u.SetResourceVersion(live.GetResourceVersion())
	return u, nil
}

// remedyFor says what to do about a [NewerError]. To delete a definition would delete all objects of its kind.
func remedyFor(kind string) string {
	if kind == "ClusterRole" {
		return "install with that version, or delete the role first"
	}
	return "install with that version, or run kubectl belay install --crds --downgrade --force-conflicts: " +
		"the API server then drops the missing fields from objects"
}

// clientFor is the client for the kind of an object. The kinds that are installed follow the rule of plurals, and an
// object with a namespace is of a kind that has them.
func (a applier) clientFor(u *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if u.GetNamespace() == "" {
		return a.client.Resource(plural)
	}
	return a.client.Resource(plural).Namespace(u.GetNamespace())
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

// waitServed waits until every served version of a definition can be listed: the API server serves a definition shortly
// after it is established. A definition that is being deleted accepts what is applied and is deleted all the same, with
// all objects of its kind. Then waitServed applies it again after it is gone.
func (a applier) waitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	served, err := servedBy(definition)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, servedEvery, true, func(ctx context.Context) (bool, error) {
		if errors.Is(last, errGone) {
			if err := a.apply(ctx, definition); err != nil {
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
	u, err := a.clientFor(definition).Get(ctx, definition.GetName(), metav1.GetOptions{})
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
