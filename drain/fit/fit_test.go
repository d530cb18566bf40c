// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain/fit"
)

const zone = corev1.LabelTopologyZone

// room makes a Node with two CPUs in a zone.
func room(name, in string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: in,
		corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourcePods: resource.MustParse("10")}
	for _, change := range changes {
		change(n)
	}
	return n
}

// asks makes a pod of the app "web" that asks for CPU.
func asks(name, node, cpu string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
		Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func spread(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"app": "web"}}}}
	}
}

func withClaim(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
}

func withGenericVolume(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To("zonal")}}}}}}
}

func volumeOn(requirement corev1.NodeSelectorRequirement) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}}}}}}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// Each case has the Node n1, which is drained, and others.
func TestPlaceReplacements(t *testing.T) {
	bound := map[types.NamespacedName]*corev1.PersistentVolumeClaim{{Namespace: "shop", Name: "data"}: {
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}}
	drained := room("n1", "a")
	for _, c := range []struct {
		name    string
		cluster fit.Cluster
		leaving []*corev1.Pod
		want    []string // of each pod: its Node, or part of why it has none
	}{
		{"replacements use up the room", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}},
			[]*corev1.Pod{asks("p", "n1", "1"), asks("q", "n1", "1"), asks("r", "n1", "1")},
			[]string{"n2", "n2", "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are being drained"}},
		{"a higher priority is placed first", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}},
			[]*corev1.Pod{asks("p", "n1", "2"), asks("q", "n1", "2", func(p *corev1.Pod) {
				p.Spec.Priority = ptr.To(
					int32(9))
			})},
			[]string{"Insufficient cpu", "n2"}},
		{"no Node at all", fit.Cluster{}, []*corev1.Pod{asks("p", "n1", "1")}, []string{"no nodes available"}},
		{"an extended resource, two reasons of one Node", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}},
			[]*corev1.Pod{asks("p", "n1", "3", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
			})}, []string{"1 Insufficient cpu, 1 Insufficient example.com/gpu"}},
		// The zone of the volume has no other Node, as in kubernetes/autoscaler issue 1576 and kubernetes issue 71265.
		{"the volume is in the zone of the drained node", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "b")},
			Claims: bound,
			Volumes: map[string]*corev1.PersistentVolume{"pv-1": {ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{zone: "a"}}}}},
			[]*corev1.Pod{asks("p", "n1", "1", withClaim)}, []string{"1 node(s) had no available volume zone"}},
		// A local volume keeps its pod on the Node, as in kubernetes/autoscaler issue 6417.
		{"the volume is on the drained node", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}, Claims: bound,
			Volumes: map[string]*corev1.PersistentVolume{"pv-1": volumeOn(in(corev1.LabelHostname, "n1"))}},
			[]*corev1.Pod{asks("p", "n1", "1", withClaim)}, []string{"1 node(s) didn't match PersistentVolume's node affinity"}},
		{"a volume that moves", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}, Claims: bound,
			Volumes: map[string]*corev1.PersistentVolume{"pv-1": volumeOn(in(zone, "a"))}},
			[]*corev1.Pod{asks("p", "n1", "1", withClaim)}, []string{"n2"}},
		{"a new volume where its class has none", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "b")},
			Classes: map[string]*storagev1.StorageClass{"zonal": {Provisioner: "example.com",
				AllowedTopologies: []corev1.TopologySelectorTerm{{
					MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"a"}}}}}}}},
			[]*corev1.Pod{asks("p", "n1", "1", withGenericVolume)}, []string{
				"didn't find available persistent volumes to bind"}},
		// The drained Node stays a domain of its own, though it takes no pod: kubernetes/autoscaler issue 8162 is about
		// what changes when the machine is removed.
		{"a spread over hosts counts the cordoned one", fit.Cluster{
			Nodes: []*corev1.Node{drained, room("n2", "a")}, Pods: []*corev1.Pod{asks("there", "n2", "1")}},
			[]*corev1.Pod{asks("p", "n1", "1", spread(corev1.LabelHostname))},
			[]string{"1 node(s) didn't match pod topology spread constraints"}},
		{"and not where taints are honored", fit.Cluster{
			Nodes: []*corev1.Node{drained, room("n2", "a")}, Pods: []*corev1.Pod{asks("there", "n2", "1")}},
			[]*corev1.Pod{asks("p", "n1", "1", spread(corev1.LabelHostname), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
			})}, []string{"n2"}},
		{"replacements of one app keep apart", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")}},
			[]*corev1.Pod{asks("p", "n1", "1", apart), asks("q", "n1", "1", apart)},
			[]string{"n2", "anti-affinity rules"}},
		{"a pod that has finished uses nothing", fit.Cluster{Nodes: []*corev1.Node{drained, room("n2", "a")},
			Pods: []*corev1.Pod{asks("job", "n2", "2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}},
			[]*corev1.Pod{asks("p", "n1", "2")}, []string{"n2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cluster.Draining = []string{"n1"}
			for i, v := range fit.PlaceReplacements(c.cluster, c.leaving) {
				if v.Fits != (v.Node != "") || v.Fits && v.Node != c.want[i] || !v.Fits && !strings.Contains(v.Why, c.want[i]) {
					t.Errorf("pod %s: got %+v, want %q", c.leaving[i].Name, v, c.want[i])
				}
				if v.Unchecked != "" {
					t.Errorf("pod %s: not checked: %s", c.leaving[i].Name, v.Unchecked)
				}
			}
		})
	}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
}

// What is not known is not held against a pod, and is named.
func TestUnknownIsNotHeldAgainstAPod(t *testing.T) {
	c := fit.Cluster{Nodes: []*corev1.Node{room("n1", "a"), room("n2", "b")}, Draining: []string{"n1"}}
	for want, change := range map[string]func(*corev1.Pod){
		"volume data: the claim data is not known":        withClaim,
		"volume tmp: the StorageClass zonal is not known": withGenericVolume,
		"its resource claims (dynamic resource allocation)": func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		},
	} {
		if v := fit.PlaceReplacements(c, []*corev1.Pod{asks("p", "n1", "1", change)})[0]; !v.Fits || v.Unchecked != want {
			t.Errorf("got %+v, want a Node and %q", v, want)
		}
	}
}
