// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
	drain "github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/golden"
	machine "github.com/belayproject/belay/machine/v1alpha1"
	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

const header = "# Copyright The belay Authors.\n# SPDX-License-Identifier: Apache-2.0\n\n"

// Every base is built by kustomize, and each object of a base is in the whole once, but for those of bases that a cluster has to ask for.
func TestEveryBaseIsBuilt(t *testing.T) {
	whole := keys(build(t, "."))
	if c := slices.Compact(slices.Clone(whole)); len(c) != len(whole) {
		t.Errorf("the whole names an object twice: %q", whole)
	}
	for _, base := range bases(t) {
		for _, name := range keys(build(t, base)) {
			if in := slices.Contains(whole, name); in == slices.Contains(extra, base) {
				t.Errorf("%s of %s: it is in the whole: %t", name, base, in)
			}
		}
	}
}

// The definitions are those that the Go types were made with.
func TestDefinitionsAreTheGeneratedOnes(t *testing.T) {
	want := map[string]map[string]any{}
	for _, text := range slices.Concat(configsync.CRDs(), rollout.CRDs(), machine.CRDs(), drain.CRDs()) {
		var u unstructured.Unstructured
		must(t, yaml.Unmarshal(text, &u.Object))
		want[u.GetName()] = u.Object
	}
	got := map[string]map[string]any{}
	for _, u := range build(t, "crds") {
		got[u.GetName()] = plain(t, u.Object)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("examples/manifests/crds has %q, want what the packages have", keys(build(t, "crds")))
	}
}

// plain is a value with the types that a decoder gives.
func plain(t testing.TB, object map[string]any) (out map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	must(t, err)
	must(t, yaml.Unmarshal(text, &out))
	return out
}

// R-AU-01: the policies are what identity/nodeauth makes of the options. UPDATE_GOLDEN=1 writes them anew.
func TestPoliciesAreTheGeneratedOnes(t *testing.T) {
	golden.Check(t, "../"+manifests+"/policies/host-agent.yaml", policies(t, hostAgents()))
}

// policies are the policy and its binding, in YAML.
func policies(t testing.TB, o nodeauth.Options) string {
	t.Helper()
	objects, err := nodeauth.Objects(o)
	must(t, err)
	text := []string{}
	for _, object := range objects {
		if u := untyped(t, object); strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy") {
			document, err := yaml.Marshal(u.Object)
			must(t, err)
			text = append(text, string(document))
		}
	}
	return header + "# Made by identity/nodeauth of the options in examples/internal/manifestproof: UPDATE_GOLDEN=1 go test -run Policies there.\n" + strings.Join(text, "---\n")
}
