// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
)

const (
	// sampleSize is how many objects of a kind are read from the server.
	sampleSize = 250
	// catchUpTime is how long the cache may take to show an object of the sample.
	catchUpTime = 400 * time.Millisecond
)

// sample reads a few objects of a kind from the server.
type sample func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)

// lister returns the objects of a sample, and how many there are beyond them where the server says so.
type lister func(ctx context.Context) (objects []runtime.Object, more int64, err error)

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
		list := func(ctx context.Context) ([]runtime.Object, int64, error) {
			return readSample(ctx, samples[i.resource])
		}
		if err := i.compare(ctx, stores[i.resource], list); err != nil {
			return err
		}
	}
	return nil
}

func readSample(ctx context.Context, read sample) (objects []runtime.Object, more int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, shortTimeout)
	defer cancel()
	list, err := read(ctx, metav1.ListOptions{Limit: sampleSize})
	if err != nil {
		return nil, 0, err
	}
	if accessor, err := meta.ListAccessor(list); err == nil && accessor.GetRemainingItemCount() != nil {
		more = *accessor.GetRemainingItemCount()
	}
	objects, err = meta.ExtractList(list)
	return objects, more, err
}

// compare reads a sample until the informer shows all of it, or has had the time to.
func (i *informer) compare(ctx context.Context, store cache.Indexer, list lister) error {
	end := time.Now().Add(catchUpTime)
	for {
		objects, more, err := list(ctx)
		if err != nil {
			return fmt.Errorf("listing %s: %w", i.resource, err)
		}
		problem := i.compareOnce(store, objects, more)
		if problem == nil || time.Now().After(end) {
			return problem
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), problem)
		case <-time.After(syncEvery):
		}
	}
}

// compareOnce returns an [InformerError] for the first object of the sample that the informer does not show as a drain
// needs it.
func (i *informer) compareOnce(store cache.Indexer, objects []runtime.Object, more int64) error {
	shown := 0
	var missing string
	for _, live := range objects {
		key, err := cache.MetaNamespaceKeyFunc(live)
		if err != nil {
			return i.wrong(true, err)
		}
		cached, ok, _ := store.GetByKey(key) // a store in memory has no errors
		if !ok {
			missing = key
			continue
		}
		shown++
		if err := compareObject(live, cached); err != nil {
			return i.wrong(true, fmt.Errorf("%q: %w", key, err))
		}
	}
	if missing != "" {
		return i.wrong(true, fmt.Errorf("it shows %d of %d %s of the server, not %q: %w",
			shown, len(objects), i.resource, missing, ErrSelectsTooLittle))
	}
	total, have := int64(len(objects))+more, int64(len(store.ListKeys()))
	if have < total-total/10 { // the numbers of a busy cluster differ
		return i.wrong(true, fmt.Errorf("it shows %d of %d %s of the server: %w",
			have, total, i.resource, ErrSelectsTooLittle))
	}
	return nil
}

// compareObject returns an error for a field that the server has in this version of the object, and the cached object
// has not.
func compareObject(live runtime.Object, cached any) error {
	if want, got := fmt.Sprintf("%T", live), fmt.Sprintf("%T", cached); got != want && got != "*"+want {
		return fmt.Errorf("the informer holds %s, want %s: %w", got, want, ErrFieldMissing)
	}
	slimLive, err := Transform(live)
	if err != nil {
		return err
	}
	slimCached, err := Transform(cached)
	if err != nil {
		return err
	}
	liveMeta, err := meta.Accessor(slimLive)
	if err != nil {
		return err
	}
	cachedMeta, err := meta.Accessor(slimCached)
	if err != nil {
		return err
	}
	if v := cachedMeta.GetResourceVersion(); v != "" && v != liveMeta.GetResourceVersion() {
		return nil // another version: nothing to compare
	}
	for _, f := range append(fieldsOfMeta(liveMeta, cachedMeta), fieldsOf(slimLive, slimCached)...) {
		if !equality.Semantic.DeepEqual(f.live, f.cached) {
			return fmt.Errorf("%s is not what the server has: %w", f.name, ErrFieldMissing)
		}
	}
	return nil
}

// A field is one that a drain reads, as the server has it and as the cache shows it.
type field struct {
	name         string
	live, cached any
}

func fieldsOfMeta(live, cached metav1.Object) []field {
	return []field{
		{"metadata.uid", live.GetUID(), cached.GetUID()},
		{"metadata.resourceVersion", live.GetResourceVersion(), cached.GetResourceVersion()},
		{"metadata.deletionTimestamp", live.GetDeletionTimestamp(), cached.GetDeletionTimestamp()},
	}
}

// fieldsOf are those of each kind, but for what fieldsOfMeta has.
func fieldsOf(live, cached any) []field {
	switch l := live.(type) {
	case *corev1.Pod:
		if c, ok := cached.(*corev1.Pod); ok {
			return fieldsOfPod(l, c)
		}
	case *corev1.Node:
		if c, ok := cached.(*corev1.Node); ok {
			const mark = drain.MarkAnnotation
			return []field{
				{"metadata.labels", l.Labels, c.Labels},
				{"metadata.annotations[" + mark + "]", l.Annotations[mark], c.Annotations[mark]},
				{"spec.unschedulable", l.Spec.Unschedulable, c.Spec.Unschedulable},
				{"spec.taints", l.Spec.Taints, c.Spec.Taints},
				{"status.conditions", l.Status.Conditions, c.Status.Conditions},
			}
		}
	case *policyv1.PodDisruptionBudget:
		if c, ok := cached.(*policyv1.PodDisruptionBudget); ok {
			return []field{
				{"metadata.generation", l.Generation, c.Generation}, {"spec", l.Spec, c.Spec}, {"status", l.Status, c.Status},
			}
		}
	case *storagev1.VolumeAttachment:
		if c, ok := cached.(*storagev1.VolumeAttachment); ok {
			return []field{{"spec", l.Spec, c.Spec}, {"status", l.Status, c.Status}}
		}
	case *corev1.PersistentVolumeClaim:
		if c, ok := cached.(*corev1.PersistentVolumeClaim); ok {
			return []field{{"spec", l.Spec, c.Spec}}
		}
	case *corev1.PersistentVolume:
		if c, ok := cached.(*corev1.PersistentVolume); ok {
			return []field{{"spec", l.Spec, c.Spec}}
		}
	case *appsv1.DaemonSet:
	}
	return nil
}

func fieldsOfPod(live, cached *corev1.Pod) []field {
	return []field{
		{"metadata.labels", live.Labels, cached.Labels},
		{"metadata.annotations", live.Annotations, cached.Annotations},
		{"metadata.ownerReferences", live.OwnerReferences, cached.OwnerReferences},
		{"metadata.finalizers", live.Finalizers, cached.Finalizers},
		{"metadata.creationTimestamp", live.CreationTimestamp, cached.CreationTimestamp},
		{"metadata.deletionGracePeriodSeconds", live.DeletionGracePeriodSeconds, cached.DeletionGracePeriodSeconds},
		{"spec.nodeName", live.Spec.NodeName, cached.Spec.NodeName},
		{"spec.tolerations", live.Spec.Tolerations, cached.Spec.Tolerations},
		{"spec.priority", live.Spec.Priority, cached.Spec.Priority},
		{"spec.restartPolicy", live.Spec.RestartPolicy, cached.Spec.RestartPolicy},
		{"spec.terminationGracePeriodSeconds",
			live.Spec.TerminationGracePeriodSeconds, cached.Spec.TerminationGracePeriodSeconds},
		{"spec.volumes", live.Spec.Volumes, cached.Spec.Volumes},
		{"spec.containers", live.Spec.Containers, cached.Spec.Containers},
		{"spec.initContainers", live.Spec.InitContainers, cached.Spec.InitContainers},
		{"status.phase", live.Status.Phase, cached.Status.Phase},
		{"status.conditions", live.Status.Conditions, cached.Status.Conditions},
		{"status.startTime", live.Status.StartTime, cached.Status.StartTime},
		{"status.containerStatuses", live.Status.ContainerStatuses, cached.Status.ContainerStatuses},
		{"status.initContainerStatuses", live.Status.InitContainerStatuses, cached.Status.InitContainerStatuses},
	}
}
