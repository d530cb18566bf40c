// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/identity/nodeauth"
)

// agents is the DaemonSet, and the hooks that are mounted into it.
func agents(t *testing.T) (*appsv1.DaemonSet, *corev1.ConfigMap) {
	t.Helper()
	all := build(t, "agent")
	d := find[appsv1.DaemonSet](t, all, "DaemonSet", agentAccount)
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			return d, find[corev1.ConfigMap](t, all, "ConfigMap", v.ConfigMap.Name)
		}
	}
	t.Fatal("the DaemonSet mounts no hooks")
	return nil, nil
}

// The agent takes its arguments; its hooks are there, under the names that they must have; and what it writes outlives the pod.
func TestAgentRunsAsItIsDeployed(t *testing.T) {
	d, hooks := agents(t)
	pod := d.Spec.Template.Spec
	args := expanded(t, pod.Containers[0])
	if args[0] != "update" {
		t.Fatalf("the agent is started as %q, want update", args)
	}
	var s settings.Update
	flags := pflag.NewFlagSet("update", pflag.ContinueOnError)
	s.AddFlags(flags)
	must(t, flags.Parse(args[1:]))
	for _, path := range []string{s.StateDir, s.Hooks} {
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
			t.Errorf("nothing is mounted at %s", path)
		}
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || m.MountPath == s.StateDir && pod.Volumes[i].HostPath == nil {
			t.Errorf("%s is of the volume %q, want one of the host where state is", m.MountPath, m.Name)
		}
	}
	s.Hooks = t.TempDir()
	for name, text := range hooks.Data {
		if !strings.HasPrefix(text, "#!/bin/sh\n") {
			t.Errorf("the hook %s does not begin with its interpreter", name)
		}
		must(t, os.WriteFile(filepath.Join(s.Hooks, name), []byte(text), 0o700)) //nolint:gosec // it is to be executed
	}
	if _, err := update.Hooks(s.Hooks, nil); err != nil {
		t.Errorf("the agent does not take the hooks: %v", err)
	}
	if err := s.Validate(); err != nil {
		t.Errorf("the agent does not take its arguments: %v", err)
	}
	if o := podAgents(); s.Guard != o.Name || s.LeaseNamespace != agentNamespace {
		t.Errorf("it asks for the policy %q with a Lease in %q, want %q and %q", s.Guard, s.LeaseNamespace, o.Name, agentNamespace)
	}
}

// R-AU-02, R-AU-03: its token is the one that the policy knows: of the pod, for an hour at most, and of the guarded account.
func TestAgentsPodIsGuarded(t *testing.T) {
	d, _ := agents(t)
	spec := d.Spec.Template.Spec
	if err := podAgents().CheckPod(d.Namespace, &spec); err != nil {
		t.Error(err)
	}
	want, err := nodeauth.TokenVolume("token", "", nodeauth.LongestToken)
	must(t, err)
	at := slices.IndexFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == want.Name })
	if at < 0 || spec.Containers[0].VolumeMounts[at].MountPath != "/var/run/secrets/kubernetes.io/serviceaccount" {
		t.Errorf("the token is not mounted where the agent looks for it: %+v", spec.Containers[0].VolumeMounts)
	}
}

// The server takes the agent's pods in their namespace, on any node, also on one that is cordoned or not ready.
func TestAgentsPodsAreTaken(t *testing.T) {
	c := installed(t)
	d, _ := agents(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try", Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	eventually(t, "the pods of the agents must be taken", func() error {
		_, err := c.admin.CoreV1().Pods(agentNamespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
		return err
	})
	tolerations := d.Spec.Template.Spec.Tolerations
	if len(tolerations) != 1 || tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("the agents tolerate %+v, want everything", tolerations)
	}
	if surge := d.Spec.UpdateStrategy.RollingUpdate.MaxSurge; surge.IntValue() != 0 {
		t.Errorf("a second agent is started beside the first: maxSurge is %s", surge.String())
	}
}
