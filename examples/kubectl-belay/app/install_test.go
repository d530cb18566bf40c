// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/testenv"
)

// A dry run stores nothing, the first install creates everything, the second changes nothing, and one of the definitions alone gives no right.
func TestInstall(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	client, err := kubernetes.NewForConfig(env.Config())
	must(t, err)
	run := func(args ...string) []string {
		t.Helper()
		var out, errs bytes.Buffer
		c := newCommand(&out, &errs)
		c.SetArgs(append([]string{"install", "--kubeconfig=" + env.Kubeconfig()}, args...))
		if code, err := exitCode(c.ExecuteContext(t.Context())); code != exitDone {
			t.Fatalf("install %q: code %d, error %v, said %s", args, code, err, errs.String())
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	all := func(lines []string, word string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(line, " "+word) {
				t.Errorf("got %q, want it %s", line, word)
			}
		}
	}
	has := func(want bool) {
		t.Helper()
		roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		found := false
		for _, r := range roles.Items {
			found = found || r.Name == "belay-controller"
		}
		if found != want {
			t.Errorf("the role of the controller is there: %t, want %t", found, want)
		}
	}
	dry := run("--dry-run")
	all(dry, "created (dry run)")
	has(false)
	crds := run("--crds")
	all(crds, "created")
	if len(crds) < 6 || len(crds) >= len(dry) {
		t.Errorf("%d definitions of %d objects", len(crds), len(dry))
	}
	has(false)
	rest := run()
	all(rest[:len(crds)], "unchanged")
	all(rest[len(crds):], "created")
	has(true)
	if len(rest) != len(dry) {
		t.Errorf("%d objects are installed, and the dry run has %d", len(rest), len(dry))
	}
	all(run(), "unchanged")
	all(run("--dry-run"), "unchanged (dry run)")
}

// A role and a definition that a newer belay has installed stay as they are. The error names what is missing, and the
// flag that replaces them.
func TestInstallOverNewer(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	client, err := kubernetes.NewForConfig(env.Config())
	must(t, err)
	run := func(args ...string) error {
		c := newCommand(&bytes.Buffer{}, &bytes.Buffer{})
		c.SetArgs(append([]string{"install", "--kubeconfig=" + env.Kubeconfig()}, args...))
		return c.ExecuteContext(t.Context())
	}
	refused := func(want string) {
		t.Helper()
		if err := run(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--downgrade") {
			t.Errorf("install: error %v, want %s, and the flag --downgrade", err, want)
		}
	}
	must(t, run())
	patch := func(path, value string) {
		t.Helper()
		body := []byte(`[{"op":"add","path":"` + value + `}]`)
		must(t, client.RESTClient().Patch(types.JSONPatchType).AbsPath(path).Body(body).Do(t.Context()).Error())
	}
	patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/belay-controller",
		`/rules/-","value":{"apiGroups":["later"],"resources":["things"],"verbs":["get"]}`)
	refused(`ClusterRole "belay-controller" has the right "get" on "things" of group "later"`)
	patch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rollouts.belay.dev",
		`/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later","value":{"type":"string"}`)
	refused(`CustomResourceDefinition "rollouts.belay.dev" has the field v1alpha1.spec.later`)
	if err := run("--downgrade", "--force-conflicts"); err != nil {
		t.Errorf("install --downgrade: %v", err)
	}
	must(t, run())
}

// This program is built without the internal packages of the library, so it has a copy of what compares two versions.
func TestNewerIsACopy(t *testing.T) {
	library, err := os.ReadFile("../../../internal/install/newer.go")
	must(t, err)
	own, err := os.ReadFile("../internal/install/newer.go")
	must(t, err)
	if !bytes.Equal(own, library) {
		t.Error("internal/install/newer.go differs from that of the library: copy it")
	}
}
