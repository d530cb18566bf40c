// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// schemaOf is the schema of a kind.
func schemaOf(t *testing.T, kind string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	for _, manifest := range v1alpha1.CRDs() {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(manifest, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind == kind {
			return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("there is no definition of %q", kind)
	return apiextensionsv1.JSONSchemaProps{}
}

// rulesOf are the messages of all rules that stand in a definition, but for those of the config types, which have tests of their own.
func rulesOf(t *testing.T, kind string) []string {
	t.Helper()
	messages := rulesIn(schemaOf(t, kind))
	if len(messages) == 0 {
		t.Fatalf("the definition of %q has no rules", kind)
	}
	return messages
}

func rulesIn(schema apiextensionsv1.JSONSchemaProps) (messages []string) {
	for _, rule := range schema.XValidations {
		messages = append(messages, rule.Message)
	}
	for name, property := range schema.Properties {
		if name != "config" && name != "configMapRef" {
			messages = append(messages, rulesIn(property)...)
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		messages = append(messages, rulesIn(*schema.Items.Schema)...)
	}
	return messages
}

// enumOf are the values that a definition allows for the phase of a status.
func enumOf(t *testing.T, kind string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, value := range propertyOf(schemaOf(t, kind), "phase").Enum {
		var text string
		if err := yaml.Unmarshal(value.Raw, &text); err != nil {
			t.Fatal(err)
		}
		all[text] = true
	}
	return all
}

// propertyOf finds a property by name, at any depth.
func propertyOf(schema apiextensionsv1.JSONSchemaProps, name string) apiextensionsv1.JSONSchemaProps {
	if p, ok := schema.Properties[name]; ok {
		return p
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		return propertyOf(*schema.Items.Schema, name)
	}
	for _, p := range schema.Properties {
		if found := propertyOf(p, name); found.Type != "" {
			return found
		}
	}
	return apiextensionsv1.JSONSchemaProps{}
}

// checkWords checks that a definition allows these values and no others.
func checkWords(t *testing.T, name string, words []string, enum []apiextensionsv1.JSON) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, w := range words {
		want[w] = true
	}
	for _, value := range enum {
		got[strings.Trim(string(value.Raw), `"`)] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: the definition has %v, the package %v", name, got, want)
	}
}
