// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// TestTransformKeepsWhatARemovalLoses shows that data in a host path stops a removal also where the pod comes from the cache, and that
// a path which the pod only reads does not. R-DR-18.
func TestTransformKeepsWhatARemovalLoses(t *testing.T) {
	for name, c := range map[string]struct {
		readOnly, init bool
		want           []drain.Reason
	}{
		"written":         {want: []drain.Reason{drain.LocalStorage}},
		"written by init": {init: true, want: []drain.Reason{drain.LocalStorage}},
		"read":            {readOnly: true},
		"read by init":    {readOnly: true, init: true},
	} {
		pod := bulky(1)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}})
		main := &pod.Spec.Containers[0]
		if c.init {
			pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			main = &pod.Spec.InitContainers[0]
		}
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: c.readOnly})
		for cached, seen := range map[bool]*corev1.Pod{false: pod, true: slim(t, pod)} {
			snapshot := aSnapshot(t)
			snapshot.Nodes[0].Pods = []*corev1.Pod{seen}
			found := drain.Preflight(snapshot, drain.Policy{Removal: &drain.Removal{}}, now)
			if len(found) != len(c.want) || len(found) > 0 && found[0].Reason != c.want[0] {
				t.Errorf("%s, from the cache %v: got %v, want %v", name, cached, found, c.want)
			}
		}
	}
}
