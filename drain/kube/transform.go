// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
)

// annotationPrefix is what the drain's own annotations begin with.
const annotationPrefix = "drain.belay.dev/"

// Transform is a [cache.TransformFunc] that drops what a drain doesn't read. A pod loses its affinity,
// its containers but for how they run, how they mount directories of the node and the extended resources that they request, and
// all annotations but those of drains, of mirror pods and of [drain.PresetRules]; of a volume it keeps the name, and the source where that holds data.
// A Node keeps its metadata, spec and conditions, and of its managedFields the
// entries that say who has set its cordon and its mark. A DaemonSet keeps its name and UID. Objects of other kinds, and
// what is no object, are passed through. It changes no object that it is given.
//
// Who gives [drain.Options].Fits a function that looks at containers or affinity uses a factory without Transform.
func Transform(obj any) (any, error) {
	return slimObject(obj, nil)
}

// transformKeeping is [Transform] that also keeps these annotations of pods.
func transformKeeping(annotations []string) func(obj any) (any, error) {
	return func(obj any) (any, error) { return slimObject(obj, annotations) }
}

func slimObject(obj any, annotations []string) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return slimPod(o, annotations), nil
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: unannotated(o.ObjectMeta)}, nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: withCordonOwners(o.ObjectMeta), Spec: o.Spec, Status: corev1.NodeStatus{Conditions: o.Status.Conditions},
		}, nil
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{ObjectMeta: unannotated(o.ObjectMeta), Spec: o.Spec, Status: o.Status}, nil
	case *storagev1.VolumeAttachment:
		return &storagev1.VolumeAttachment{ObjectMeta: unannotated(o.ObjectMeta), Spec: o.Spec, Status: o.Status}, nil
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{ObjectMeta: unannotated(o.ObjectMeta), Spec: o.Spec, Status: o.Status}, nil
	case *corev1.PersistentVolume:
		return &corev1.PersistentVolume{ObjectMeta: unannotated(o.ObjectMeta), Spec: o.Spec, Status: o.Status}, nil
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
		}}, nil
	default:
		return obj, nil
	}
}

func slimPod(o *corev1.Pod, annotations []string) *corev1.Pod {
	meta := unannotated(o.ObjectMeta)
	meta.GenerateName = ""
	for key, value := range o.Annotations {
		if isKept(key, annotations) {
			metav1.SetMetaDataAnnotation(&meta, key, value)
		}
	}
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: o.Spec.NodeName, SchedulingGates: o.Spec.SchedulingGates, Tolerations: o.Spec.Tolerations,
			Priority: o.Spec.Priority, RestartPolicy: o.Spec.RestartPolicy,
			PriorityClassName:             o.Spec.PriorityClassName,
			TerminationGracePeriodSeconds: o.Spec.TerminationGracePeriodSeconds, Volumes: slimVolumes(o.Spec.Volumes),
			InitContainers: slimContainers(o.Spec.InitContainers, o.Spec.Volumes),
			Containers:     slimContainers(o.Spec.Containers, o.Spec.Volumes),
		},
		Status: corev1.PodStatus{
			Phase: o.Status.Phase, Conditions: o.Status.Conditions, StartTime: o.Status.StartTime,
			InitContainerStatuses: slimStatuses(o.Status.InitContainerStatuses),
			ContainerStatuses:     slimStatuses(o.Status.ContainerStatuses),
		},
	}
}

// slimVolumes keeps the source of volumes with data on the node or in a claim, and of the others that they exist.
func slimVolumes(full []corev1.Volume) []corev1.Volume {
	var slim []corev1.Volume
	for _, v := range full {
		s := corev1.Volume{Name: v.Name}
		s.EmptyDir, s.HostPath, s.PersistentVolumeClaim = v.EmptyDir, v.HostPath, v.PersistentVolumeClaim
		if v.Ephemeral != nil { // its claim is named after the pod and the volume
			s.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		slim = append(slim, s)
	}
	return slim
}

// isKept reports whether an annotation of a pod is kept.
func isKept(key string, annotations []string) bool {
	return key == corev1.MirrorPodAnnotationKey || strings.HasPrefix(key, annotationPrefix) ||
		slices.Contains(presetAnnotations, key) || slices.Contains(annotations, key)
}

// presetAnnotations are what [drain.PresetRules] reads.
var presetAnnotations = []string{
	"karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict",
	"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
}

// slimContainers keeps of the containers how they mount directories of the node, by which [drain.Policy].Removal knows
// who writes to them, and what extended resources they request, for rules. Few pods have any.
func slimContainers(full []corev1.Container, volumes []corev1.Volume) []corev1.Container {
	var slim []corev1.Container
	for i := range full {
		var mounts []corev1.VolumeMount
		for _, m := range full[i].VolumeMounts {
			ofNode := func(v corev1.Volume) bool { return v.Name == m.Name && v.HostPath != nil }
			if slices.ContainsFunc(volumes, ofNode) {
				mounts = append(mounts, corev1.VolumeMount{Name: m.Name, ReadOnly: m.ReadOnly})
			}
		}
		requests := extendedResources(full[i].Resources.Requests)
		if len(mounts) > 0 || requests != nil {
			slim = append(slim, corev1.Container{
				Name: full[i].Name, VolumeMounts: mounts, Resources: corev1.ResourceRequirements{Requests: requests},
			})
		}
	}
	return slim
}

// extendedResources are those that Kubernetes itself does not know.
func extendedResources(requests corev1.ResourceList) corev1.ResourceList {
	var extended corev1.ResourceList
	for name, quantity := range requests {
		domain, _, isQualified := strings.Cut(string(name), "/")
		if !isQualified || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			continue
		}
		if extended == nil {
			extended = corev1.ResourceList{}
		}
		extended[name] = quantity
	}
	return extended
}

func slimStatuses(full []corev1.ContainerStatus) []corev1.ContainerStatus {
	var slim []corev1.ContainerStatus
	for _, c := range full {
		s := corev1.ContainerStatus{Name: c.Name, Ready: c.Ready, RestartCount: c.RestartCount}
		if c.State.Waiting != nil {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.State.Waiting.Reason}
		}
		slim = append(slim, s)
	}
	return slim
}

// withCordonOwners drops the managedFields of a Node but for the entries that name who has set its cordon and its mark.
func withCordonOwners(meta metav1.ObjectMeta) metav1.ObjectMeta {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range meta.ManagedFields {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		if fields := entry.FieldsV1.String(); strings.Contains(fields, cordonField) || strings.Contains(fields, markField) {
			kept = append(kept, entry)
		}
	}
	meta.ManagedFields = kept
	return meta
}

// The fields of a Node whose owners a drain asks for, as managedFields have them.
const cordonField, markField = `"f:unschedulable"`, `"f:` + drain.MarkAnnotation + `"`

func unannotated(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.ManagedFields, meta.Annotations = nil, nil
	return meta
}
