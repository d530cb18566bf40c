// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/informer"
)

// compareAgain is the pause after a comparison to which the API server gave no answer.
const compareAgain = time.Second

// A comparison is how far the informers of an embedder have been compared with the API server.
type comparison struct {
	core kubernetes.Interface
	seen stores // of the informers

	mu   sync.Mutex
	done map[string]bool // by option
}

// compareInformers compares what the informers of an embedder show with what the API server has, once. It returns an
// [InformerError] for one that drops a field or selects too little. Where the server does not answer it tries again,
// until ctx ends.
func (c *Caches) compareInformers(ctx context.Context) error {
	c.comparison.mu.Lock()
	defer c.comparison.mu.Unlock()
	for _, s := range c.sampleKinds() {
		for c.foreign[s.option] != nil && !c.comparison.done[s.option] {
			wrong, err := s.Compare(ctx)
			switch {
			case wrong != nil:
				wrong := &InformerError{Option: s.option, Err: wrong}
				return fmt.Errorf("rollout/kube: comparing the caches with the API server: %w", wrong)
			case ctx.Err() != nil:
				return nil
			case err == nil:
				c.comparison.done[s.option] = true
				continue
			}
			klog.FromContext(ctx).Error(err, "Comparing the caches of rollouts with the API server")
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(compareAgain):
			}
		}
	}
	return nil
}

// A sampled is a sample for the informer of an option.
type sampled struct {
	option string
	informer.Sample
}

// sampleKinds returns a sample for each informer that an embedder may give.
func (c *Caches) sampleKinds() []sampled {
	type options = metav1.ListOptions
	const all = metav1.NamespaceAll
	seen, core, apps := c.comparison.seen, c.comparison.core.CoreV1(), c.comparison.core.AppsV1()
	sample := func(kind string, store cache.Indexer, list func(context.Context, options) (runtime.Object, error)) sampled {
		return sampled{"Informers." + kind, informer.Sample{
			Resource: strings.ToLower(kind), Store: store, List: list, Fields: fieldsRead,
		}}
	}
	return []sampled{
		sample("Nodes", seen.nodes, func(ctx context.Context, o options) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		}),
		sample("Pods", seen.pods, func(ctx context.Context, o options) (runtime.Object, error) {
			return core.Pods(all).List(ctx, o)
		}),
		sample("Deployments", seen.deployments, func(ctx context.Context, o options) (runtime.Object, error) {
			return apps.Deployments(all).List(ctx, o)
		}),
		sample("StatefulSets", seen.statefulSets, func(ctx context.Context, o options) (runtime.Object, error) {
			return apps.StatefulSets(all).List(ctx, o)
		}),
		sample("DaemonSets", seen.daemonSets, func(ctx context.Context, o options) (runtime.Object, error) {
			return apps.DaemonSets(all).List(ctx, o)
		}),
	}
}

// fieldsRead are what a controller of rollouts reads of an object.
func fieldsRead(obj any) []informer.Field {
	switch o := obj.(type) {
	case *corev1.Node:
		own := maps.Clone(o.Annotations)
		maps.DeleteFunc(own, func(key, _ string) bool { return !strings.Contains(key, "belay.dev/") })
		conditions := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range o.Status.Conditions {
			conditions[c.Type] = c.Status
		}
		return []informer.Field{
			{Name: "metadata.labels", Value: o.Labels}, {Name: "metadata.annotations", Value: own},
			{Name: "spec.unschedulable", Value: o.Spec.Unschedulable}, {Name: "status.conditions", Value: conditions},
		}
	case *corev1.Pod:
		return []informer.Field{
			{Name: "metadata.labels", Value: o.Labels[appsv1.DefaultDeploymentUniqueLabelKey]},
			{Name: "metadata.ownerReferences", Value: o.OwnerReferences},
			{Name: "spec.nodeName", Value: o.Spec.NodeName}, {Name: "status.phase", Value: o.Status.Phase},
			{Name: "status.conditions", Value: isReady(o)},
		}
	case *appsv1.Deployment:
		return []informer.Field{{Name: "spec.replicas", Value: replicas(o.Spec.Replicas)}}
	case *appsv1.StatefulSet:
		return []informer.Field{{Name: "spec.replicas", Value: replicas(o.Spec.Replicas)}}
	default:
		return nil
	}
}
