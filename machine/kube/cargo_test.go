// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"testing"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/kube"
)

func hosts(names ...string) map[machine.Key]*corev1.Node {
	all := map[machine.Key]*corev1.Node{}
	for _, name := range names {
		all[machine.Key{Namespace: "fleet", Name: name}] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: map[string]string{corev1.LabelHostname: "node-" + name, "zone": "z"}},
		}
	}
	return all
}

func volume(change func(*corev1.PersistentVolume)) corev1.PersistentVolume {
	v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db"}
	change(&v)
	return v
}

// bound makes the volume need Nodes by a label.
func bound(v *corev1.PersistentVolume, key string, operator corev1.NodeSelectorOperator, values ...string) {
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}}}
}

// R-MA-25: which volumes are on a machine alone.
func TestLocalVolumes(t *testing.T) {
	user := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: "node-a", Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db"}},
	}}}}
	local := &corev1.LocalVolumeSource{Path: "/data"}
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"of a network": {func(*corev1.PersistentVolume) {}, "[]"},
		"of a zone":    {func(v *corev1.PersistentVolume) { bound(v, "zone", corev1.NodeSelectorOpIn, "z") }, "[]"},
		"local": {func(v *corev1.PersistentVolume) {
			v.Spec.Local = local
			bound(v, corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-a")
		}, "[{v fleet/a shop/db}]"},
		"local, elsewhere": {func(v *corev1.PersistentVolume) {
			v.Spec.Local = local
			bound(v, corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-c")
		}, "[]"},
		"local, not there": {func(v *corev1.PersistentVolume) {
			v.Spec.Local = local
			bound(v, corev1.LabelHostname, corev1.NodeSelectorOpNotIn, "node-a")
		}, "[{v fleet/b shop/db}]"},
		"of another driver":   {func(v *corev1.PersistentVolume) { bound(v, corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-b") }, "[{v fleet/b shop/db}]"},
		"a path that is used": {func(v *corev1.PersistentVolume) { v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/data"} }, "[{v fleet/a shop/db}]"},
		"a path of nobody": {func(v *corev1.PersistentVolume) {
			v.Spec.HostPath, v.Spec.ClaimRef = &corev1.HostPathVolumeSource{Path: "/data"}, nil
		}, "[]"},
		"released": {func(v *corev1.PersistentVolume) {
			v.Spec.Local, v.Status.Phase = local, corev1.VolumeReleased
			bound(v, corev1.LabelHostname, corev1.NodeSelectorOpExists)
		}, "[{v fleet/a } {v fleet/b }]"},
		"what is not understood may be here": {func(v *corev1.PersistentVolume) { v.Spec.Local = local; bound(v, corev1.LabelHostname, "Near", "x") }, "[{v fleet/a shop/db} {v fleet/b shop/db}]"},
	} {
		if got := fmt.Sprint(kube.LocalVolumes(hosts("a", "b"), []corev1.PersistentVolume{volume(c.change)}, []corev1.Pod{user})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// R-MA-25: what has pods on a machine, and how many elsewhere.
func TestWorkloads(t *testing.T) {
	pod := func(kind, owner, node string, ready corev1.ConditionStatus) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: "node-" + node}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(kind + owner), Controller: ptr.To(true)}}
		}
		return p
	}
	leaving := pod("ReplicaSet", "cart", "a", corev1.ConditionTrue)
	leaving.DeletionTimestamp = &metav1.Time{}
	pods := []corev1.Pod{
		pod("ReplicaSet", "cart", "a", corev1.ConditionTrue), pod("ReplicaSet", "cart", "b", corev1.ConditionTrue), pod("ReplicaSet", "cart", "c", corev1.ConditionFalse),
		pod("StatefulSet", "db", "a", corev1.ConditionTrue), pod("ReplicaSet", "far", "c", corev1.ConditionTrue), leaving,
		pod("DaemonSet", "net", "a", corev1.ConditionTrue), pod("Job", "once", "a", corev1.ConditionTrue), pod("Node", "static", "a", corev1.ConditionTrue), pod("", "", "a", corev1.ConditionTrue),
	}
	if got, want := fmt.Sprint(kube.Workloads(hosts("a"), pods)), "[{ReplicaSet shop/cart 2 1} {StatefulSet shop/db 1 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
