// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var dryRun = []string{metav1.DryRunAll}

func serve(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	env := shared.Env(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := env.InstallCRDs(ctx, v1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.NodeMaintenancesResource)
}

// object makes one from the YAML of its spec.
func object(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := "apiVersion: belay.dev/v1alpha1\nkind: NodeMaintenance\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// A sole collects which rules have been the only reason for a refusal.
type sole map[string]bool

func (s sole) judge(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v, want it accepted", err)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want it refused as invalid with %q", err, want)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) == 1 {
		s[status.Status().Details.Causes[0].Message] = true
	}
}

// The API server refuses what can't be meant, in words that help, and each rule of the definition is needed for that.
func TestServerRefusesWhatCannotBeMeant(t *testing.T) {
	c, alone := serve(t), sole{}
	for _, row := range []struct{ name, spec, want string }{
		{"as by medik8s", "nodeName: n1, reason: disk", ""},
		{"all fields", "nodeSelector: {matchLabels: {rack: r1}, " +
			"matchExpressions: [{key: gpu, operator: In, values: ['yes']}]}, mode: Drain, maxConcurrent: 25%, " +
			"windows: [{from: '2030-01-01T00:00:00Z', until: '2030-01-01T04:00:00Z'}], " +
			"deadline: '2030-01-01T05:00:00Z', " +
			"policy: {localData: Evict, settle: 1s}", ""},
		{"neither", "reason: disk", "exactly one of nodeName and nodeSelector"},
		{"both", "nodeName: n1, nodeSelector: {matchLabels: {rack: r1}}", "exactly one of nodeName and nodeSelector"},
		{"every node", "nodeSelector: {}", "an empty one would select every node"},
		{
			"values without In", "nodeSelector: {matchExpressions: [{key: gpu, operator: Exists, values: ['yes']}]}",
			"values must be set for In and NotIn",
		},
		{"other mode", "nodeName: n1, mode: drain", "Unsupported value"},
		{"endless hold", "nodeName: n1, mode: Hold", "deadline must be set for mode Hold"},
		{
			"window that ends first",
			"nodeName: n1, windows: [{from: '2030-01-02T00:00:00Z', until: '2030-01-01T00:00:00Z'}]",
			"until must be after from",
		},
		{"empty window", "nodeName: n1, windows: [{}]", "at least one of from and until"},
		{"no windows", "nodeName: n1, windows: []", "should have at least 1 items"},
		{"many of one", "nodeName: n1, maxConcurrent: 2", "beside nodeName, which is one node"},
		{"none at a time", "nodeSelector: {matchLabels: {rack: r1}}, maxConcurrent: 0", "from 1 on, or a percentage"},
		{"more than all", "nodeSelector: {matchLabels: {rack: r1}}, maxConcurrent: 101%", "from 1 on, or a percentage"},
		{"date without time", "nodeName: n1, deadline: '2030-01-01'", "deadline"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := c.Create(t.Context(), object(t, "checked", row.spec), metav1.CreateOptions{DryRun: dryRun})
			alone.judge(t, err, row.want)
		})
	}
	for name, spec := range map[string]string{
		"one": "nodeName: n1", "rack": "nodeSelector: {matchLabels: {rack: r1}}", "cordon": "nodeName: n1, mode: Cordon",
	} {
		made, err := c.Create(t.Context(), object(t, name, spec), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if mode, _, _ := unstructured.NestedString(made.Object, "spec", "mode"); name == "one" && mode != "Drain" {
			t.Errorf("mode is %q without one, want Drain", mode)
		}
	}
	for _, row := range []struct{ name, of, patch, want string }{
		{"reason", "one", "{spec: {reason: fan, deadline: '2030-01-01T00:00:00Z', policy: {unmanaged: Evict}}}", ""},
		{"other node", "one", "{spec: {nodeName: n2}}", "nodeName is immutable"},
		{"other selector", "rack", "{spec: {nodeSelector: {matchLabels: {rack: r2}}}}", "nodeSelector is immutable"},
		{"cordon becomes drain", "cordon", "{spec: {mode: Drain}}", ""},
		{"drain becomes cordon", "one", "{spec: {mode: Cordon}}", "mode may change from Cordon to Drain alone"},
	} {
		t.Run("change/"+row.name, func(t *testing.T) {
			patch, err := yaml.YAMLToJSON([]byte(row.patch))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Patch(t.Context(), row.of, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
			alone.judge(t, err, row.want)
		})
	}
	for _, rule := range rulesIn(testenv.SchemaOfCRD(t, v1alpha1.CRDs(), v1alpha1.NodeMaintenanceKind)) {
		found := false
		for cause := range alone {
			found = found || strings.Contains(cause, rule)
		}
		if !found {
			t.Errorf("no row is refused by this rule alone: %q", rule)
		}
	}
}

func rulesIn(schema testenv.CRDSchema) (messages []string) {
	for _, rule := range schema.XValidations {
		messages = append(messages, rule.Message)
	}
	for _, property := range schema.Properties {
		messages = append(messages, rulesIn(property)...)
	}
	if schema.Items != nil {
		messages = append(messages, rulesIn(*schema.Items)...)
	}
	return messages
}

// The examples in the manifests are such as the API server takes, with no field that it does not know.
func TestExamplesAreTaken(t *testing.T) {
	c := serve(t)
	text, err := os.ReadFile("../../examples/manifests/node-maintenance/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		options := metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict}
		if _, err := c.Create(t.Context(), u, options); err != nil {
			t.Errorf("%s: %v", u.GetName(), err)
		}
	}
}
