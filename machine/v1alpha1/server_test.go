// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine/v1alpha1"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A served is one kind on the server, in a namespace of the test.
type served struct {
	dynamic.ResourceInterface
	t               *testing.T
	kind, namespace string
	// alone are the messages that have been the only reason for a refusal: without them, what they refuse would be accepted.
	alone map[string]bool
}

// serve installs the definitions and returns a client of one of the kinds.
func serve(t *testing.T, kind string, resource schema.GroupVersionResource) *served {
	t.Helper()
	env := shared.Env(t)
	if err := env.InstallCRDs(deadline(t), v1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespace := env.Namespace(t)
	return &served{client.Resource(resource).Namespace(namespace), t, kind, namespace, map[string]bool{}}
}

// object makes one from the YAML of its spec, and perhaps of its metadata.
func (s *served) object(name, spec string, meta ...string) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for field, text := range map[string]string{"metadata": strings.Join(meta, ""), "spec": spec} {
		part := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
		if len(part) > 0 || field == "spec" {
			u.Object[field] = part
		}
	}
	u.SetAPIVersion(v1alpha1.GroupVersion.String())
	u.SetKind(s.kind)
	u.SetName(name)
	u.SetNamespace(s.namespace)
	return u
}

// create stores an object.
func (s *served) create(name, spec string, meta ...string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.Create(deadline(s.t), s.object(name, spec, meta...), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		s.t.Fatalf("%s: %v", spec, err)
	}
	return u
}

// merge stores a merge patch in YAML.
func (s *served) merge(name, patch string, subresource ...string) error {
	s.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		s.t.Fatalf("%s: %v", patch, err)
	}
	_, err = s.Patch(deadline(s.t), name, types.MergePatchType, raw, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, subresource...)
	return err
}

// rows asks the server about specs, in which it may ignore nothing, and checks what it has against them; "" is nothing.
func (s *served) rows(rows [][2]string) {
	s.t.Helper()
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	for _, row := range rows {
		_, err := s.Create(deadline(s.t), s.object("row", row[0]), options)
		s.judge(row[0], err, row[1])
	}
}

// judge checks one answer.
func (s *served) judge(name string, err error, want string) {
	s.t.Helper()
	switch {
	case want == "" && err != nil:
		s.t.Errorf("%s: refused: %v, want it accepted", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		s.t.Errorf("%s: got %v, want it refused with %q", name, err, want)
	case want != "" && want != unknown && !apierrors.IsInvalid(err):
		s.t.Errorf("%s: got %v, want it refused as invalid", name, err)
	}
	if c := causes(err); len(c) == 1 {
		s.alone[c[0]] = true
	}
}

const unknown = "unknown field"

// causes are what the server has against an object.
func causes(err error) (all []string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, c := range status.Status().Details.Causes {
		all = append(all, c.Message)
	}
	return all
}

// eachRule checks that every rule of the definition is needed, but for some: a row was refused by it alone.
func (s *served) eachRule(but ...string) {
	s.t.Helper()
	rules := rulesIn(schemaOf(s.t, s.kind))
	if len(rules) == 0 {
		s.t.Fatalf("the definition of %s has no rules", s.kind)
	}
	for _, rule := range rules {
		found := slices.Contains(but, rule)
		for cause := range s.alone {
			found = found || strings.Contains(cause, rule)
		}
		if !found {
			s.t.Errorf("no row is refused by this rule alone: %q", rule)
		}
	}
}

// schemaOf is the schema of a kind.
func schemaOf(t *testing.T, kind string) testenv.CRDSchema {
	t.Helper()
	return testenv.SchemaOfCRD(t, v1alpha1.CRDs(), kind)
}

// rulesIn are the messages of all rules in a schema, but for those of the config source, which has tests of its own.
func rulesIn(schema testenv.CRDSchema) (messages []string) {
	for _, rule := range schema.XValidations {
		messages = append(messages, rule.Message)
	}
	for name, property := range schema.Properties {
		if name != "configSource" {
			messages = append(messages, rulesIn(property)...)
		}
	}
	if schema.Items != nil {
		messages = append(messages, rulesIn(*schema.Items)...)
	}
	return slices.Compact(slices.Sorted(slices.Values(messages)))
}
