// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	shared "github.com/belayproject/belay/internal/informer"
)

// sample reads a few objects of a kind from the server.
type sample func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)

// samples are the reads for what the Cache watches, by resource.
func (c *Cache) samples() map[string]sample {
	return map[string]sample{
		"nodes": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if c.node != "" {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.node).String()
			}
			return c.client.CoreV1().Nodes().List(ctx, o)
		},
		"pods": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if c.node != "" {
				o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.node).String()
			}
			return c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		},
		"poddisruptionbudgets": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, o)
		},
		"daemonsets": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, o)
		},
		"volumeattachments": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.StorageV1().VolumeAttachments().List(ctx, o)
		},
		"persistentvolumeclaims": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, o)
		},
		"namespaces": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.CoreV1().Namespaces().List(ctx, o)
		},
		"persistentvolumes": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.CoreV1().PersistentVolumes().List(ctx, o)
		},
	}
}

// compare compares a sample of each kind with what the informers show, one kind after the other.
func (c *Cache) compare(ctx context.Context) error {
	stores := map[string]cache.Indexer{}
	for _, p := range (Informers{}).parts() {
		stores[p.resource] = *p.store(c)
	}
	samples := c.samples()
	for _, i := range c.informers {
		wrong, err := compareSample(ctx, shared.Sample{
			Resource: i.resource, Store: stores[i.resource], Informer: i.Informer, List: samples[i.resource],
			Fields:       func(obj any) []shared.Field { return fieldsRead(obj, c.annotations) },
			FieldMissing: ErrFieldMissing, SelectsTooLittle: ErrSelectsTooLittle,
		})
		if err != nil {
			return err
		}
		if wrong != nil {
			return i.wrong(true, wrong)
		}
	}
	return nil
}

// compareAgain is the pause after a comparison with an informer that is behind.
const compareAgain = time.Second

// compareSample compares until the informer has come as far as the sample, or ctx ends.
func compareSample(ctx context.Context, s shared.Sample) (wrong, err error) {
	for {
		wrong, err := s.Compare(ctx)
		if !errors.Is(err, shared.ErrBehind) {
			return wrong, err
		}
		klog.FromContext(ctx).Info("Waiting for an informer of drains", "err", err)
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(compareAgain):
		}
	}
}

// fieldsRead are what a drain reads of an object, after [Transform], with these annotations of pods.
func fieldsRead(obj any, annotations []string) []shared.Field {
	slim, err := transformKeeping(annotations)(obj)
	if err != nil {
		return nil
	}
	switch o := slim.(type) {
	case *corev1.Pod:
		return fieldsOfPod(o)
	case *corev1.Node:
		const mark = drain.MarkAnnotation
		return []shared.Field{
			{Name: "metadata.labels", Value: o.Labels},
			{Name: "metadata.annotations[" + mark + "]", Value: o.Annotations[mark]},
			{Name: "spec.unschedulable", Value: o.Spec.Unschedulable},
			{Name: "spec.taints", Value: o.Spec.Taints},
			{Name: "status.conditions", Value: o.Status.Conditions},
		}
	case *policyv1.PodDisruptionBudget:
		return []shared.Field{
			{Name: "metadata.generation", Value: o.Generation}, {Name: "spec", Value: o.Spec}, {Name: "status", Value: o.Status},
		}
	case *storagev1.VolumeAttachment:
		return []shared.Field{{Name: "spec", Value: o.Spec}, {Name: "status", Value: o.Status}}
	case *corev1.PersistentVolumeClaim:
		return []shared.Field{{Name: "spec", Value: o.Spec}}
	case *corev1.PersistentVolume:
		return []shared.Field{{Name: "spec", Value: o.Spec}}
	case *corev1.Namespace:
		return []shared.Field{{Name: "metadata.labels", Value: o.Labels}}
	default:
		return nil
	}
}

func fieldsOfPod(p *corev1.Pod) []shared.Field {
	return []shared.Field{
		{Name: "metadata.labels", Value: p.Labels},
		{Name: "metadata.annotations", Value: p.Annotations},
		{Name: "metadata.ownerReferences", Value: p.OwnerReferences},
		{Name: "metadata.finalizers", Value: p.Finalizers},
		{Name: "metadata.creationTimestamp", Value: p.CreationTimestamp},
		{Name: "metadata.deletionGracePeriodSeconds", Value: p.DeletionGracePeriodSeconds},
		{Name: "spec.nodeName", Value: p.Spec.NodeName},
		{Name: "spec.tolerations", Value: p.Spec.Tolerations},
		{Name: "spec.priority", Value: p.Spec.Priority},
		{Name: "spec.priorityClassName", Value: p.Spec.PriorityClassName},
		{Name: "spec.restartPolicy", Value: p.Spec.RestartPolicy},
		{Name: "spec.terminationGracePeriodSeconds", Value: p.Spec.TerminationGracePeriodSeconds},
		{Name: "spec.volumes", Value: p.Spec.Volumes},
		{Name: "spec.containers", Value: p.Spec.Containers},
		{Name: "spec.initContainers", Value: p.Spec.InitContainers},
		{Name: "status.phase", Value: p.Status.Phase},
		{Name: "status.conditions", Value: p.Status.Conditions},
		{Name: "status.startTime", Value: p.Status.StartTime},
		{Name: "status.containerStatuses", Value: p.Status.ContainerStatuses},
		{Name: "status.initContainerStatuses", Value: p.Status.InitContainerStatuses},
	}
}
