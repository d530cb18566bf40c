// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// schemaOf is the schema of a kind.
func schemaOf(t *testing.T, kind string) testenv.CRDSchema {
	t.Helper()
	return testenv.SchemaOfCRD(t, v1alpha1.CRDs(), kind)
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

func rulesIn(schema testenv.CRDSchema) (messages []string) {
	for _, rule := range schema.XValidations {
		messages = append(messages, rule.Message)
	}
	for name, property := range schema.Properties {
		if name != "config" && name != "configMapRef" {
			messages = append(messages, rulesIn(property)...)
		}
	}
	if schema.Items != nil {
		messages = append(messages, rulesIn(*schema.Items)...)
	}
	return messages
}

// enumOf are the values that a definition allows for the phase of a status.
func enumOf(t *testing.T, kind string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, value := range propertyOf(schemaOf(t, kind), "phase").Enum {
		var text string
		if err := yaml.Unmarshal(value, &text); err != nil {
			t.Fatal(err)
		}
		all[text] = true
	}
	return all
}

// propertyOf finds a property by name, at any depth.
func propertyOf(schema testenv.CRDSchema, name string) testenv.CRDSchema {
	if p, ok := schema.Properties[name]; ok {
		return p
	}
	if schema.Items != nil {
		return propertyOf(*schema.Items, name)
	}
	for _, p := range schema.Properties {
		if found := propertyOf(p, name); found.Type != "" {
			return found
		}
	}
	return testenv.CRDSchema{}
}

// checkWords checks that a definition allows these values and no others.
func checkWords(t *testing.T, name string, words []string, enum []json.RawMessage) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, w := range words {
		want[w] = true
	}
	for _, value := range enum {
		got[strings.Trim(string(value), `"`)] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: the definition has %v, the package %v", name, got, want)
	}
}
