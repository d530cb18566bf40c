// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain/fit"
)

// randomClusters makes small clusters, each with Nodes of its own and one pod that is to be placed on one of them.
type randomClusters struct {
	*rand.Rand
	namespace string
	cluster   fit.Cluster
	claims    []*corev1.PersistentVolumeClaim
	volumes   []*corev1.PersistentVolume
	incoming  []*corev1.Pod
}

func (r *randomClusters) oneIn(n int) bool { return r.IntN(n) == 0 }

// makeCluster adds a cluster. Its Nodes have the label "cluster" with its number, and no pod matches one of another.
func (r *randomClusters) makeCluster(i int) {
	nodes := 2 + r.IntN(4)
	for j := range nodes {
		r.makeNode(i, j)
	}
	for j := range r.IntN(7) {
		pod := r.makePod(i, fmt.Sprintf("there-%d-%d", i, j))
		pod.Spec.NodeName = fmt.Sprintf("n%d-%d", i, r.IntN(nodes))
		if r.oneIn(4) {
			r.addAffinity(i, pod)
		}
		r.cluster.Pods = append(r.cluster.Pods, pod)
	}
	pod := r.makePod(i, fmt.Sprintf("incoming-%d", i))
	pod.Spec.NodeSelector = map[string]string{"cluster": fmt.Sprint(i)}
	for _, add := range []func(int, *corev1.Pod){r.addAffinity, r.addSpread, r.addNodeAffinity, r.addTolerations,
		r.addVolume} {
		if r.oneIn(2) {
			add(i, pod)
		}
	}
	r.incoming = append(r.incoming, pod)
}

func (r *randomClusters) makeNode(i, j int) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("n%d-%d", i, j),
		Labels: map[string]string{"cluster": fmt.Sprint(i), "disk": []string{"ssd", "hdd"}[r.IntN(2)],
			"rank": fmt.Sprint(r.IntN(5)), corev1.LabelHostname: fmt.Sprintf("n%d-%d", i, j)},
	}}
	if !r.oneIn(6) {
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d-%d", i, r.IntN(3))
	}
	if r.oneIn(4) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "gpu", Value: "yes",
			Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}[r.IntN(2)]})
	}
	if r.oneIn(5) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: corev1.TaintEffectNoSchedule})
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(1000+r.IntN(3)*500), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourcePods: *resource.NewQuantity(int64(2+r.IntN(
			4)), resource.DecimalSI),
	}
	if r.oneIn(3) {
		node.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
	}
	r.cluster.Nodes = append(r.cluster.Nodes, node)
}

func (r *randomClusters) makePod(i int, name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": fmt.Sprintf("%s-%d", []string{"web", "db"}[r.IntN(2)], i),
				"revision": fmt.Sprint(r.IntN(2))}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100*(1+r.IntN(9))),
		resource.DecimalSI)}
	if r.oneIn(3) {
		requests[corev1.ResourceMemory] = resource.MustParse([]string{"512Mi", "1Gi", "1800Mi"}[r.IntN(3)])
	}
	main := &pod.Spec.Containers[0]
	if r.oneIn(6) {
		requests["example.com/gpu"] = resource.MustParse("1")
		main.Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}
	main.Resources.Requests = requests
	if r.oneIn(4) {
		main.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: []string{"", "10.0.0.1"}[r.IntN(2)]}}
	}
	if r.oneIn(5) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.com/init",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100*(1+r.IntN(12))),
					resource.DecimalSI)}}}}
		if r.oneIn(2) {
			pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
	}
	return pod
}

func (r *randomClusters) appSelector(i int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("%s-%d", []string{"web",
		"db"}[r.IntN(2)], i)}}
}

func (r *randomClusters) topologyKey() string {
	return []string{corev1.LabelHostname, corev1.LabelTopologyZone}[r.IntN(2)]
}

func (r *randomClusters) addAffinity(i int, pod *corev1.Pod) {
	term := corev1.PodAffinityTerm{LabelSelector: r.appSelector(i), TopologyKey: r.topologyKey()}
	if r.oneIn(3) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.namespace}}
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if r.oneIn(2) {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		return
	}
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
}

func (r *randomClusters) addSpread(i int, pod *corev1.Pod) {
	c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + r.IntN(2)), TopologyKey: r.topologyKey(),
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: r.appSelector(i)}
	if r.oneIn(2) {
		c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
	}
	if r.oneIn(3) {
		c.MinDomains = ptr.To(int32(1 + r.IntN(4)))
	}
	if r.oneIn(3) {
		c.MatchLabelKeys = []string{"revision"}
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
}

func (r *randomClusters) addNodeAffinity(_ int, pod *corev1.Pod) {
	requirement := []corev1.NodeSelectorRequirement{
		{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}},
		{Key: "disk", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"ssd"}},
		{Key: "rank", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}},
		{Key: "rank", Operator: corev1.NodeSelectorOpLt, Values: []string{"4"}},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpDoesNotExist},
	}[r.IntN(6)]
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}}}}
}

func (r *randomClusters) addTolerations(_ int, pod *corev1.Pod) {
	pod.Spec.Tolerations = [][]corev1.Toleration{
		{{Key: "gpu", Operator: corev1.TolerationOpExists}}, {{Key: "gpu", Value: "yes",
			Effect: corev1.TaintEffectNoSchedule}},
		{{Key: "gpu", Value: "no"}}, {{Operator: corev1.TolerationOpExists}},
	}[r.IntN(4)]
}

// addVolume adds a claim that is bound to a volume of a zone, by affinity or by label, or that waits for its pod.
func (r *randomClusters) addVolume(i int, pod *corev1.Pod) {
	name := fmt.Sprintf("data-%d", i)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("zonal"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	r.claims = append(r.claims, claim)
	r.cluster.Claims[types.NamespacedName{Namespace: r.namespace, Name: name}] = claim
	zone := fmt.Sprintf("zone-%d-%d", i, r.IntN(3))
	if r.oneIn(4) {
		class := "class-" + zone
		claim.Spec.StorageClassName = &class
		r.cluster.Classes[class] = &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/disk",
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{zone}}}}},
		}
		return
	}
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim.Spec.VolumeName = name
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, StorageClassName: "zonal",
			ClaimRef: &corev1.ObjectReference{Namespace: r.namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "example.com", VolumeHandle: name}},
		},
	}
	if r.oneIn(2) {
		volume.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	} else {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone,
					Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
	r.volumes = append(r.volumes, volume)
	r.cluster.Volumes[name] = volume
}
