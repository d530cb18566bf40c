// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

// servedEvery is the pause between two looks whether a kind is served. It isn't watched: this is done once, by a person.
const servedEvery = 100 * time.Millisecond

// InstallCRDs brings the CustomResourceDefinitions of package v1alpha1 to this version, by server-side apply, and waits until
// their kinds are served. ctx bounds the wait, each call has [DefaultTimeout]. It may be repeated. The caller needs rights that no
// node should have.
func InstallCRDs(ctx context.Context, config *rest.Config) error {
	client, err := NewClient(config)
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinitions: %w", err)
	}
	c, err := newCaller(client, Options{})
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinitions: %w", err)
	}
	for _, manifest := range v1alpha1.CRDs() {
		if err := c.install(ctx, manifest); err != nil {
			return fmt.Errorf("installing CustomResourceDefinitions: %w", err)
		}
	}
	return nil
}

func (c caller) install(ctx context.Context, manifest []byte) error {
	crd := &unstructured.Unstructured{}
	raw, err := yaml.ToJSON(manifest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &crd.Object); err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	t := target{kind: crd.GetKind(), name: crd.GetName(), resource: resource}
	if err := c.apply(ctx, t, crd); err != nil {
		return err
	}
	return c.awaitServed(ctx, t)
}

func (c caller) apply(ctx context.Context, t target, crd *unstructured.Unstructured) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err := c.at(t).Apply(ctx, t.name, crd, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("applying %s: %w", t, refused(err))
	}
	return nil
}

// awaitServed waits until the kind that the definition t defines can be listed. That it is established isn't enough: the API server
// answers requests a moment later.
func (c caller) awaitServed(ctx context.Context, t target) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, servedEvery, true, func(ctx context.Context) (bool, error) {
		last = c.served(ctx, t)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served: %w", t, errors.Join(err, last))
	}
	return nil
}

func (c caller) served(ctx context.Context, t target) error {
	crd, err := c.get(ctx, t)
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if !established(conditions) {
		return errors.New("it isn't established")
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err = c.client.Resource(v1alpha1.NodeConfigsResource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func established(conditions []any) bool {
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" {
			return m["status"] == "True"
		}
	}
	return false
}
