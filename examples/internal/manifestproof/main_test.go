// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
)

// shared is one control plane with everything that the manifests hold: see installed.
var shared testenv.Shared

// programs are those that tests start, but for this one.
var programs e2e.Programs

func TestMain(m *testing.M) {
	if code, is := child(os.Args); is {
		os.Exit(code)
	}
	os.Exit(programs.Main(m, &shared))
}

const (
	// root is that of the main module, as it is seen from this package.
	root      = "../../.."
	manifests = root + "/examples/manifests"

	// systemNamespace is where the controller lives, agentNamespace where agents in pods do.
	systemNamespace, agentNamespace = "belay-system", "belay-agents"
	controllerAccount, agentAccount = "belay-controller", "belay-agent"

	// patience bounds each wait for the server.
	patience = time.Minute
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build is what kustomize makes of a base below the manifests; "." is the whole.
func build(t testing.TB, base string) []*unstructured.Unstructured {
	t.Helper()
	return buildAt(t, filepath.Join(manifests, base))
}

// buildAt is what kustomize makes of a directory.
func buildAt(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", dir, err)
	}
	var all []*unstructured.Unstructured
	for _, r := range made.Resources() {
		object, err := r.Map()
		must(t, err)
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	if len(all) == 0 {
		t.Fatalf("kustomize build %s makes nothing", dir)
	}
	return all
}

// only are the objects of the kinds.
func only(all []*unstructured.Unstructured, kinds ...string) (some []*unstructured.Unstructured) {
	for _, u := range all {
		if slices.Contains(kinds, u.GetKind()) {
			some = append(some, u)
		}
	}
	return some
}

// find gives the one object of that kind and name as its type.
func find[T any](t testing.TB, all []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, u := range only(all, kind) {
		if u.GetName() == name {
			return typed[T](t, u)
		}
	}
	t.Fatalf("there is no %s %q", kind, name)
	return nil
}

// typed gives an object as its type, which must know every field of it.
func typed[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &out, true); err != nil {
		t.Fatalf("%s %q: %v", u.GetKind(), u.GetName(), err)
	}
	return &out
}

// key names an object as a person would.
func key(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + "/" + u.GetName()
	}
	return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
}
