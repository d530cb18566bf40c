// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	agentsettings "github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/controller/settings"
)

// deployed is the Deployment of the controller, and what its command line says.
func deployed(t *testing.T) ([]*unstructured.Unstructured, *appsv1.Deployment, *settings.Run) {
	t.Helper()
	all := build(t, "controller")
	d, s := started(t, all)
	return all, d, s
}

// started is the Deployment of the controller among all, and what its command line says.
func started(t *testing.T, all []*unstructured.Unstructured) (*appsv1.Deployment, *settings.Run) {
	t.Helper()
	d := find[appsv1.Deployment](t, all, "Deployment", controllerAccount)
	container := d.Spec.Template.Spec.Containers[0]
	var s settings.Run
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	s.AddFlags(flags)
	if err := flags.Parse(expanded(t, container)); err != nil {
		t.Fatalf("the controller does not take its arguments: %v", err)
	}
	if err := s.Validate(); err != nil {
		t.Fatalf("the controller does not take its arguments: %v", err)
	}
	return d, &s
}

// expanded are a container's arguments, as the kubelet gives them. A variable that is not declared would be given as it is written.
func expanded(t *testing.T, c corev1.Container) (args []string) {
	t.Helper()
	for _, arg := range c.Args {
		for _, v := range regexp.MustCompile(`\$\(([A-Z_]+)\)`).FindAllStringSubmatch(arg, -1) {
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v[1] && e.ValueFrom != nil }) {
				t.Errorf("%s: %q names a variable that is not declared", c.Name, arg)
			}
			arg = strings.ReplaceAll(arg, v[0], "some-"+strings.ToLower(strings.ReplaceAll(v[1], "_", "-")))
		}
		args = append(args, arg)
	}
	return args
}

// The controller takes its arguments, and answers where the probes, the Service and the elections look for it.
func TestControllerRunsAsItIsDeployed(t *testing.T) {
	all, d, s := deployed(t)
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	port := container.Ports[0]
	if want := fmt.Sprintf(":%d", port.ContainerPort); s.Listen != want {
		t.Errorf("it listens on %q, and the port %q is %s", s.Listen, port.Name, want)
	}
	if s.Namespace != systemNamespace || d.Namespace != systemNamespace {
		t.Errorf("it lives in %q and elects leaders in %q, want both in %q, where its Role is", d.Namespace, s.Namespace, systemNamespace)
	}
	service := find[corev1.Service](t, all, "Service", controllerAccount)
	if p := service.Spec.Ports[0]; p.TargetPort.String() != port.Name || p.Port != port.ContainerPort {
		t.Errorf("the Service's port is %d to %s, want %d to %s", p.Port, p.TargetPort.String(), port.ContainerPort, port.Name)
	}
	served := read(t, root+"/examples/controller/app/command.go")
	for what, probe := range map[string]*corev1.Probe{"liveness": container.LivenessProbe, "readiness": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet.Port.String() != port.Name || !strings.Contains(served, `"GET `+probe.HTTPGet.Path+`"`) {
			t.Errorf("the %s probe is %v, want one that is served on %s", what, probe, port.Name)
		}
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= s.Stop {
		t.Errorf("it is killed after %s, and takes up to %s to hand over the lead", grace, s.Stop)
	}
	if s.PodUID == "" || s.OwnNode == "" {
		t.Errorf("--pod-uid=%q, --own-node=%q: want both from the downward API", s.PodUID, s.OwnNode)
	}
}

// Where agents are installed with it, it looks at their Leases, and waits for a silent one as long as the agents say.
func TestControllerLooksAtTheAgents(t *testing.T) {
	for _, base := range []string{".", "../trial"} {
		_, s := started(t, build(t, base))
		args := expanded(t, find[appsv1.DaemonSet](t, build(t, base), "DaemonSet", agentAccount).Spec.Template.Spec.Containers[0])
		var a agentsettings.Update
		flags := pflag.NewFlagSet("update", pflag.ContinueOnError)
		a.AddFlags(flags)
		must(t, flags.Parse(args[1:]))
		if s.Agents.Namespace != a.LeaseNamespace || s.Agents.Lease != a.Lease {
			t.Errorf("%s: it looks for Leases in %q and takes them for lost after %s, want %q and %s", base, s.Agents.Namespace, s.Agents.Lease, a.LeaseNamespace, a.Lease)
		}
	}
	// A Lease that is collected is an agent that nobody asks for any more: not within a weekend.
	if _, _, s := deployed(t); s.Agents.GCAfter < 4*24*time.Hour {
		t.Errorf("agents that are silent count as lost for %s, want four days or longer", s.Agents.GCAfter)
	}
	if _, _, s := deployed(t); s.Agents.Namespace != "" || s.Machines.Provider != "" {
		t.Errorf("by itself it looks at agents in %q and machines of %q, for which it has no rights", s.Agents.Namespace, s.Machines.Provider)
	}
}

// Two replicas on two nodes, of which one may go at a time: there is always one that waits for the lead, also while nodes are emptied.
func TestOneReplicaIsAlwaysThere(t *testing.T) {
	all, d, _ := deployed(t)
	if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
		t.Errorf("there are %v replicas, want two", d.Spec.Replicas)
	}
	labels := d.Spec.Template.Labels
	budget := find[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget", controllerAccount)
	if !maps.Equal(budget.Spec.Selector.MatchLabels, d.Spec.Selector.MatchLabels) || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget is of %v with %v, want of %v with 1", budget.Spec.Selector.MatchLabels, budget.Spec.MaxUnavailable, d.Spec.Selector.MatchLabels)
	}
	spread := d.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) != 1 || spread[0].TopologyKey != corev1.LabelHostname || spread[0].WhenUnsatisfiable != corev1.DoNotSchedule ||
		!maps.Equal(spread[0].LabelSelector.MatchLabels, labels) {
		t.Errorf("the replicas are spread by %+v, want over nodes", spread)
	}
}

// The server takes the controller's pods in its namespace, which is for pods that have nothing of a node; and refuses others there.
func TestControllersPodsAreRestricted(t *testing.T) {
	c := installed(t)
	_, d, _ := deployed(t)
	pods := c.admin.CoreV1().Pods(systemNamespace)
	try := func(change func(*corev1.PodSpec)) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try", Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
		change(&pod.Spec)
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	eventually(t, "the pods of the controller must be taken", func() error { return try(func(*corev1.PodSpec) {}) })
	for what, change := range map[string]func(*corev1.PodSpec){
		"the host's network": func(s *corev1.PodSpec) { s.HostNetwork = true },
		"root": func(s *corev1.PodSpec) {
			s.SecurityContext.RunAsNonRoot, s.SecurityContext.RunAsUser = new(false), new(int64(0))
		},
		"privileges": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Privileged, s.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true), nil
		},
		"a host directory": func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
	} {
		if err := try(change); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
			t.Errorf("a pod with %s: got %v, want it refused", what, err)
		}
	}
}
