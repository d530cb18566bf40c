// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if config == nil {
		return errors.New("config is required (see rest.InClusterConfig or clientcmd.BuildConfigFromFlags)")
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, manifest := range s.CRDs {
		d, err := decodeDefinition(manifest)
		if err != nil {
			return err
		}
		if err := s.applyDefinition(ctx, client, d); err != nil {
			return err
		}
	}
	for name, rules := range s.Roles {
		role, err := roleOf(name, rules)
		if err != nil {
			return err
		}
		if err := s.apply(ctx, client.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")), role); err != nil {
			return err
		}
	}
	return nil
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func (s Set) apply(ctx context.Context, client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := client.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: s.FieldManager, Force: true}); err != nil {
		return fmt.Errorf("applying %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

func roleOf(name string, rules []rbacv1.PolicyRule) (*unstructured.Unstructured, error) {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		return nil, fmt.Errorf("ClusterRole %q: %w", name, err)
	}
	u := &unstructured.Unstructured{Object: object}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// A definition is a CustomResourceDefinition with the resources that it defines.
type definition struct {
	object *unstructured.Unstructured
	served []schema.GroupVersionResource
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

func decodeDefinition(manifest []byte) (d definition, err error) {
	text, err := yaml.ToJSON(manifest)
	if err != nil {
		return d, fmt.Errorf("decoding a CustomResourceDefinition: %w", err)
	}
	d.object = &unstructured.Unstructured{}
	var read crd
	if err := errors.Join(json.Unmarshal(text, &d.object.Object), json.Unmarshal(text, &read)); err != nil {
		return d, fmt.Errorf("decoding a CustomResourceDefinition: %w", err)
	}
	for _, v := range read.Spec.Versions {
		if v.Served {
			d.served = append(d.served, schema.GroupVersionResource{Group: read.Spec.Group, Version: v.Name, Resource: read.Spec.Names.Plural})
		}
	}
	return d, nil
}

// applyDefinition applies a definition and waits until every served version can be listed. That the definition is established is
// not enough: the API server answers requests a moment later. One that is being deleted takes what is applied and goes
// all the same, with all objects of its kind: it is made anew when it is gone.
func (s Set) applyDefinition(ctx context.Context, client dynamic.Interface, d definition) error {
	last := errGone
	err := wait.PollUntilContextCancel(ctx, servedEvery, true, func(ctx context.Context) (bool, error) {
		if errors.Is(last, errGone) {
			if err := s.apply(ctx, client.Resource(definitions()), d.object); err != nil {
				return false, err
			}
		}
		err := d.isServed(ctx, client)
		if err == nil || ctx.Err() == nil { // a look that the end of ctx cuts short tells nothing new
			last = err
		}
		return err == nil, nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for CustomResourceDefinition %q to be served: %w", d.object.GetName(), errors.Join(err, last))
	}
	return err
}

var errGone = errors.New("it does not exist")

func (d definition) isServed(ctx context.Context, client dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := client.Resource(definitions()).Get(ctx, d.object.GetName(), metav1.GetOptions{})
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
	for _, resource := range d.served {
		if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
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
