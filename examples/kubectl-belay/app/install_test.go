// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"strings"
	"testing"

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
