// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attached lists the attached volumes of pods that leave or have left. A volume that a pod uses which stays is not waited for; a pod
// that has finished uses none.
func (n *nodePass) attached() []Attached {
	kept, users := map[string]bool{}, map[string][]PodRef{}
	for i := range n.work {
		w := &n.work[i]
		for _, volume := range n.volumesOf(w.pod) {
			if w.Action == Skip && w.Reason != reasonTerminal {
				kept[volume] = true
			} else if !slices.Contains(users[volume], w.PodRef) {
				users[volume] = append(users[volume], w.PodRef)
			}
		}
	}
	var list []Attached
	for _, a := range n.view.Attachments {
		volume := a.Spec.Source.PersistentVolumeName
		if volume == nil || kept[*volume] || !a.Status.Attached && a.DeletionTimestamp == nil {
			continue
		}
		list = append(list, Attached{Volume: *volume, Pods: users[*volume]})
	}
	slices.SortFunc(list, func(a, b Attached) int { return cmp.Compare(a.Volume, b.Volume) })
	return list
}

// volumesOf names the PersistentVolumes of a pod, as far as its claims are known. The claim of an ephemeral volume has the
// name of the pod and of the volume.
func (n *nodePass) volumesOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		}
		if claim := n.s.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]; name != "" && claim != nil && claim.Spec.VolumeName != "" {
			names = append(names, claim.Spec.VolumeName)
		}
	}
	return names
}
