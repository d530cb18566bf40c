// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/fit"
	"github.com/belayproject/belay/drain/kube"
)

// placementNode has one CPU, one port and one disk.
func placementNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("9")}},
	}
}

func request(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

// The transform of CacheOptions.Placement keeps each thing for which the estimate refuses a Node.
func TestPlacementKeepsWhatTheEstimateReads(t *testing.T) {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for want, change := range map[string]func(*corev1.Pod){
		"Insufficient cpu":       func(p *corev1.Pod) { p.Spec.Containers[0].Resources = request("2") },
		"2 Insufficient cpu":     func(p *corev1.Pod) { p.Spec.Resources = ptr.To(request("2")) },
		"Insufficient cp":        func(p *corev1.Pod) { p.Spec.Overhead = request("2").Requests },
		"node affinity/selector": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
		"topology spread constraints": func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app}}
		},
		"didn't match pod affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
					LabelSelector: app}}}}
		},
		"free ports for the requested": func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{
				HostPort: 80}}
		},
		"free ports for the requested ": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "sidecar",
				RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "u", Labels: app.MatchLabels}}
		pod.Spec.Containers = []corev1.Container{{Name: "main"}}
		taken := pod.DeepCopy()
		taken.UID, taken.Spec.NodeName = "v", "n1"
		taken.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		change(pod)
		other := taken.DeepCopy()
		other.Spec.NodeName, other.UID = "n2", "w"
		c := fit.Cluster{}
		for _, node := range []string{"n1", "n2"} {
			c.Nodes = append(c.Nodes, kept(t, placementNode(node)))
		}
		c.Pods = []*corev1.Pod{kept(t, taken), kept(t, other)}
		v := fit.PlaceReplacements(c, []*corev1.Pod{kept(t, pod)})[0]
		if v.Fits || !strings.Contains(v.Why, strings.TrimSpace(want)) {
			t.Errorf("got %+v, want %q", v, want)
		}
	}
}

func kept[T any](t *testing.T, obj T) T {
	t.Helper()
	slim, err := kube.KeepPlacement(obj, nil)
	must(t, err)
	return slim.(T)
}

// A viewOfNodes is a view with Nodes alone.
type viewOfNodes struct {
	drain.Cache
	nodes []*corev1.Node
}

func (v viewOfNodes) Nodes() []*corev1.Node { return v.nodes }

// A view that drops what is allocatable would have every pod fit nowhere: that is an error, not a finding.
func TestEstimateNeedsWhatIsAllocatable(t *testing.T) {
	slim, err := kube.Transform(placementNode("n1"))
	must(t, err)
	view := viewOfNodes{nodes: []*corev1.Node{slim.(*corev1.Node)}}
	_, err = kube.EstimateFit(t.Context(), fake.NewClientset(), view, drain.Result{})
	if !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), "set CacheOptions.Placement") {
		t.Errorf("got %v, want an ErrOption that names CacheOptions.Placement", err)
	}
}
