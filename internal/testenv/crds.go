// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// CRD is the part of a CustomResourceDefinition that tests read. The type of k8s.io/apiextensions-apiserver would bring the
// modules of an API server into the module graph of the library's users.
type CRD struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Group    string       `json:"group"`
		Names    CRDNames     `json:"names"`
		Versions []CRDVersion `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// CRDNames are the names of a defined resource.
type CRDNames struct {
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
}

// CRDVersion is one version of a defined resource.
type CRDVersion struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
	Schema struct {
		OpenAPIV3Schema CRDSchema `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// CRDSchema is a structural schema.
type CRDSchema struct {
	Type         string               `json:"type"`
	Pattern      string               `json:"pattern"`
	Properties   map[string]CRDSchema `json:"properties"`
	Items        *CRDSchema           `json:"items"`
	Enum         []json.RawMessage    `json:"enum"`
	XValidations []CRDRule            `json:"x-kubernetes-validations"`
}

// CRDRule is a validation rule of a schema.
type CRDRule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// SchemaOfCRD returns the schema of the first version of kind in the manifests.
func SchemaOfCRD(tb TB, manifests [][]byte, kind string) CRDSchema {
	tb.Helper()
	objects, err := decodeCRDs(manifests)
	if err != nil {
		tb.Fatal(err)
	}
	for _, object := range objects {
		crd, err := readCRD(object)
		if err != nil {
			tb.Fatal(err)
		}
		if crd.Spec.Names.Kind == kind {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	tb.Fatal(fmt.Errorf("there is no definition of %q", kind))
	return CRDSchema{}
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRDs creates the CustomResourceDefinitions in the manifests, each of which holds one or several YAML
// documents, and waits until the API server serves every version of them. Those that exist are left as they are.
func (e *Env) InstallCRDs(ctx context.Context, manifests ...[]byte) error {
	definitions, err := decodeCRDs(manifests)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(e.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, crd := range definitions {
		_, err := client.Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating CRD %q: %w", crd.GetName(), err)
		}
	}
	for _, crd := range definitions {
		if err := waitServed(ctx, client, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func decodeCRDs(manifests [][]byte) ([]*unstructured.Unstructured, error) {
	var definitions []*unstructured.Unstructured
	for _, manifest := range manifests {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4<<10)
		for {
			crd := &unstructured.Unstructured{}
			err := decoder.Decode(&crd.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("decoding a CRD: %w", err)
			}
			if len(crd.Object) == 0 { // an empty document, as a leading separator makes
				continue
			}
			if crd.GetKind() != "CustomResourceDefinition" {
				return nil, fmt.Errorf("decoding a CRD: %q is of kind %q", crd.GetName(), crd.GetKind())
			}
			definitions = append(definitions, crd)
		}
	}
	return definitions, nil
}

func readCRD(object *unstructured.Unstructured) (CRD, error) {
	var crd CRD
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return CRD{}, fmt.Errorf("reading CRD %q: %w", object.GetName(), err)
	}
	return crd, nil
}

// waitServed waits until the definition is established and each of its served versions can be listed: the
// condition is true a moment before the requests are answered.
func waitServed(ctx context.Context, client dynamic.Interface, name string) error {
	return poll(ctx, fmt.Sprintf("CRD %q to be served", name), func(ctx context.Context) error {
		object, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd, err := readCRD(object)
		if err != nil {
			return err
		}
		if !isEstablished(crd) {
			return fmt.Errorf("its conditions are %v", crd.Status.Conditions)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
			if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return err
			}
		}
		return nil
	})
}

func isEstablished(crd CRD) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == "Established" {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}
