// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/belayproject/belay/machine"
)

// LocalVolumes returns those that are on the Node of one of the hosts and on no other: the local and hostPath ones, and those whose affinity names hosts. It is pure.
// A hostPath volume without an affinity is where a pod uses it: pods are those on the hosts.
func LocalVolumes(hosts map[machine.Key]*corev1.Node, volumes []corev1.PersistentVolume, pods []corev1.Pod) []machine.LocalVolume {
	var found []machine.LocalVolume
	for i := range volumes {
		v := &volumes[i]
		if !local(v) {
			continue
		}
		for _, key := range keysOf(hosts) {
			if on(v, hosts[key], pods) {
				found = append(found, machine.LocalVolume{Name: v.Name, Machine: key, Claim: claim(v)})
			}
		}
	}
	slices.SortFunc(found, func(a, b machine.LocalVolume) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Machine.String(), b.Machine.String()))
	})
	return found
}

func keysOf(hosts map[machine.Key]*corev1.Node) []machine.Key {
	return slices.SortedFunc(maps.Keys(hosts), func(a, b machine.Key) int { return cmp.Compare(a.String(), b.String()) })
}

// local is a volume whose data is on a host. One whose affinity names hosts is taken for that, whatever its driver.
func local(v *corev1.PersistentVolume) bool {
	if v.Spec.Local != nil || v.Spec.HostPath != nil {
		return true
	}
	for _, t := range terms(v) {
		if len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname }) {
			return true
		}
	}
	return false
}

func terms(v *corev1.PersistentVolume) []corev1.NodeSelectorTerm {
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		return a.Required.NodeSelectorTerms
	}
	return nil
}

// on reports whether the data may be on that Node.
func on(v *corev1.PersistentVolume, n *corev1.Node, pods []corev1.Pod) bool {
	all := terms(v)
	if len(all) > 0 {
		return slices.ContainsFunc(all, func(t corev1.NodeSelectorTerm) bool { return selects(t, n) })
	}
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Name && uses(&p, v) })
}

// selects is as the scheduler does it. What this version does not understand may be this Node.
func selects(t corev1.NodeSelectorTerm, n *corev1.Node) bool {
	match := func(all []corev1.NodeSelectorRequirement, of labels.Set) bool {
		for _, r := range all {
			want, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
			if err == nil && !want.Matches(of) {
				return false
			}
		}
		return true
	}
	return match(t.MatchExpressions, n.Labels) && match(t.MatchFields, labels.Set{metav1.ObjectNameField: n.Name})
}

func operator(o corev1.NodeSelectorOperator) selection.Operator {
	switch o {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return selection.Operator(o)
}

func uses(p *corev1.Pod, v *corev1.PersistentVolume) bool {
	c := v.Spec.ClaimRef
	return c != nil && c.Namespace == p.Namespace && slices.ContainsFunc(p.Spec.Volumes, func(in corev1.Volume) bool {
		return in.PersistentVolumeClaim != nil && in.PersistentVolumeClaim.ClaimName == c.Name
	})
}

// claim is who uses a volume; one whose claim was deleted belongs to nobody.
func claim(v *corev1.PersistentVolume) string {
	if c := v.Spec.ClaimRef; c != nil && v.Status.Phase != corev1.VolumeReleased {
		return c.Namespace + "/" + c.Name
	}
	return ""
}

// Workloads returns what has pods on the hosts. It is pure. pods are all of the namespaces that have one there. Pods of DaemonSets and Jobs, of nobody and of
// the Node itself are not counted: no other one of the same stands in for them, or it comes by itself.
func Workloads(hosts map[machine.Key]*corev1.Node, pods []corev1.Pod) []machine.Workload {
	nodes := map[string]bool{}
	for _, n := range hosts {
		nodes[n.Name] = true
	}
	all := map[string]*machine.Workload{}
	for i := range pods {
		p := &pods[i]
		if !replicated(p) || !podReady(p) {
			continue
		}
		owner := metav1.GetControllerOf(p)
		w := all[string(owner.UID)]
		if w == nil {
			w = &machine.Workload{Name: owner.Kind + " " + p.Namespace + "/" + owner.Name}
			all[string(owner.UID)] = w
		}
		w.Ready++
		if nodes[p.Spec.NodeName] {
			w.Ending++
		}
	}
	var found []machine.Workload
	for _, w := range all {
		if w.Ending > 0 {
			found = append(found, *w)
		}
	}
	slices.SortFunc(found, func(a, b machine.Workload) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func replicated(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && !slices.Contains([]string{"DaemonSet", "Job", "Node"}, owner.Kind)
}

func podReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
