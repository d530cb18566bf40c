// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/agent/settings"
	controller "github.com/belayproject/belay/examples/internal/controller/settings"
)

// The trial of docs/getting-started.md is what the manifests have, with agents on the nodes of the trial alone, hooks of its own, and arguments that both
// programs take.
func TestTrialIsBuilt(t *testing.T) {
	all := build(t, "../trial")
	whole := keys(build(t, "."))
	for _, u := range all {
		// The name of a ConfigMap has a hash of what it holds.
		if u.GetKind() != "ConfigMap" && !slices.Contains(whole, key(u)) {
			t.Errorf("the trial has %s, which the manifests have not", key(u))
		}
	}
	d := find[appsv1.DaemonSet](t, all, "DaemonSet", agentAccount)
	pod := d.Spec.Template.Spec
	if !maps.Equal(pod.NodeSelector, map[string]string{"belay-trial": "yes"}) {
		t.Errorf("its agents run on nodes with %v", pod.NodeSelector)
	}
	var s settings.Update
	flags := pflag.NewFlagSet("update", pflag.ContinueOnError)
	s.AddFlags(flags)
	must(t, flags.Parse(expanded(t, pod.Containers[0])[1:]))
	var c controller.Run
	flags = pflag.NewFlagSet("controller", pflag.ContinueOnError)
	c.AddFlags(flags)
	must(t, flags.Parse(expanded(t, find[appsv1.Deployment](t, all, "Deployment", "belay-controller").Spec.Template.Spec.Containers[0])))
	must(t, c.Validate())
	if c.Page == "" {
		t.Error("its controller has no page")
	}
	for _, v := range pod.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		hooks := find[corev1.ConfigMap](t, all, "ConfigMap", v.ConfigMap.Name).Data
		want := []string{"apply", "disruption", "observe", "revert", "verify"}
		if got := slices.Sorted(maps.Keys(hooks)); !slices.Equal(got, want) || hooks["apply"] != read(t, root+"/examples/trial/hook.sh") {
			t.Errorf("its hooks are %q, want %q, each the script of the trial", got, want)
		}
	}
}
