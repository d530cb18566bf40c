// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	controller "github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/controller/wire"
)

// Who installs as the docs say has pods whose images are those that were built and pushed there, under the same names.
func TestInstallIsOfThePushedImages(t *testing.T) {
	overlay := regexp.MustCompile("(?s)```yaml\n(apiVersion: kustomize[^`]*images:[^`]*)```")
	for file, want := range map[string][]string{
		"docs/operating.md":      {"REGISTRY/belay-agent:TAG", "REGISTRY/belay-controller:TAG"},
		"docs/agent-rollouts.md": {"REGISTRY/belay-agent:TAG"},
	} {
		text := read(t, root+"/"+file)
		m := overlay.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s has no kustomization with images", file)
			continue
		}
		if got := imagesOf(t, m[1]); !slices.Equal(got, want) {
			t.Errorf("%s: its kustomization has pods of %q, want %q", file, got, want)
		}
		for _, command := range []string{`podman build [^\n]* -t (\S+)`, `podman push (\S+)`} {
			var got []string
			for _, m := range regexp.MustCompile(command).FindAllStringSubmatch(text, -1) {
				got = append(got, m[1])
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %q is for %q, want %q", file, command, got, want)
			}
		}
		if !strings.Contains(text, "kubectl apply --server-side -k mine ") {
			t.Errorf("%s does not apply its kustomization", file)
		}
	}
}

// imagesOf builds a kustomization that lies beside examples, and names the images of its pods.
func imagesOf(t *testing.T, kustomization string) (all []string) {
	t.Helper()
	dir := t.TempDir()
	examples, err := filepath.Abs(root + "/examples")
	must(t, err)
	must(t, os.Symlink(examples, filepath.Join(dir, "examples")))
	must(t, os.Mkdir(filepath.Join(dir, "mine"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "mine", "kustomization.yaml"), []byte(kustomization), 0o600))
	for _, u := range buildAt(t, filepath.Join(dir, "mine")) {
		var pod corev1.PodSpec
		switch u.GetKind() {
		case "Deployment":
			pod = typed[appsv1.Deployment](t, u).Spec.Template.Spec
		case "DaemonSet":
			pod = typed[appsv1.DaemonSet](t, u).Spec.Template.Spec
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			all = append(all, c.Image)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The commands by which docs/operating.md binds the roles of people bind each of them, and no other.
func TestRolesOfPeopleAreBound(t *testing.T) {
	var want, got []string
	for _, u := range build(t, "kubectl-belay") {
		if kind := u.GetKind(); kind == "ClusterRole" || kind == "Role" {
			want = append(want, strings.ToLower(kind)+"="+u.GetName())
		}
	}
	text := read(t, root+"/docs/operating.md")
	for _, m := range regexp.MustCompile(`kubectl (--namespace (\S+) )?create (cluster)?rolebinding \S+ --(\S+) --group=`).FindAllStringSubmatch(text, -1) {
		got = append(got, m[4])
		if m[2] != "" && m[2] != systemNamespace || (m[2] == "") != (m[3] != "") {
			t.Errorf("%q: a Role is bound in %s, a ClusterRole in the cluster", m[0], systemNamespace)
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("docs/operating.md binds %q, want %q", got, want)
	}
}

// The switch that docs/operating.md tells to make is the one that the controller of the manifests looks at.
func TestSwitchOfTheDocsIsTheControllers(t *testing.T) {
	var c controller.Run
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	c.AddFlags(flags)
	must(t, flags.Parse(expanded(t, find[appsv1.Deployment](t, build(t, "."), "Deployment", controllerAccount).Spec.Template.Spec.Containers[0])))
	object := " configmap " + c.Switch
	text := read(t, root+"/docs/operating.md")
	for _, command := range []string{
		"kubectl --namespace " + c.Namespace + " create" + object + " --from-literal=" + wire.DisabledKey + "=true --from-literal=" + wire.ReasonKey + "=",
		"kubectl --namespace " + c.Namespace + " delete" + object,
	} {
		if !strings.Contains(text, command) {
			t.Errorf("docs/operating.md lacks %q", command)
		}
	}
}
