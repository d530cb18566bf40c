// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// compareAgain is the pause after a comparison that gave no result.
const compareAgain = time.Second

// A comparison is how far the informers of an embedder have been compared with the API server.
type comparison struct {
	core kubernetes.Interface
	seen stores // of the informers

	mu   sync.Mutex
	done map[string]bool // by option
}

// compareInformers compares each informer of the embedder with the API server, once for these Caches. An informer that
// drops a field or selects too little is an [InformerError]. After any other error, also a refused list or an informer
// that lags, it compares again after a second, until ctx ends. The controller does not lead before.
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
			klog.FromContext(ctx).Error(err, "Could not compare an informer with the API server, trying again",
				"option", s.option)
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
			Resource: strings.ToLower(kind), Store: store, Informer: c.foreign["Informers."+kind], List: list,
			Fields: fieldsRead,
		}}
	}
	own := func(kind string, store cache.Indexer, resource schema.GroupVersionResource) sampled {
		s := sample(kind, store, func(ctx context.Context, o options) (runtime.Object, error) {
			return c.Client.Resource(resource).List(ctx, o)
		})
		s.AnyType = true
		return s
	}
	return []sampled{
		own("Shadows", storeOf(c.Shadows), v1alpha1.NodeShadowsResource),
		own("Rollouts", storeOf(c.Rollouts), v1alpha1.RolloutsResource),
		own("Revisions", storeOf(c.Revisions), v1alpha1.RevisionsResource),
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

// storeOf is the store of a cache of this package.
func storeOf[T any](c Cache[T]) cache.Indexer {
	if own, ok := c.(*informerCache[T]); ok {
		return own.store
	}
	return nil
}

// fieldsOfOwn are what a controller of rollouts reads of an object of this package. Spec and status are compared as
// JSON: they keep what a newer version has written in fields that reflection must not read.
func fieldsOfOwn(o metav1.Object, spec, status any) []informer.Field {
	asJSON := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return []informer.Field{
		{Name: "metadata.generation", Value: o.GetGeneration()},
		{Name: "spec", Value: asJSON(spec)}, {Name: "status", Value: asJSON(status)},
	}
}

// typedOf is an object of this package as its own type; nil where it is of another kind, or cannot be decoded.
func typedOf(u *unstructured.Unstructured) (typed any) {
	switch u.GetKind() {
	case v1alpha1.NodeShadowKind:
		typed = &v1alpha1.NodeShadow{}
	case v1alpha1.RolloutKind:
		typed = &v1alpha1.Rollout{}
	case v1alpha1.RevisionKind:
		typed = &v1alpha1.Revision{}
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return nil
	}
	return typed
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
			{
				Name:  "metadata.labels[" + appsv1.DefaultDeploymentUniqueLabelKey + "]",
				Value: o.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			},
			{Name: "metadata.ownerReferences", Value: o.OwnerReferences},
			{Name: "spec.nodeName", Value: o.Spec.NodeName}, {Name: "status.phase", Value: o.Status.Phase},
			{Name: "status.conditions", Value: isReady(o)},
		}
	case *appsv1.Deployment:
		return []informer.Field{{Name: "spec.replicas", Value: replicas(o.Spec.Replicas)}}
	case *appsv1.StatefulSet:
		return []informer.Field{{Name: "spec.replicas", Value: replicas(o.Spec.Replicas)}}
	case *unstructured.Unstructured:
		return fieldsRead(typedOf(o))
	case *v1alpha1.NodeShadow:
		return fieldsOfOwn(o, o.Spec, o.Status)
	case *v1alpha1.Rollout:
		return fieldsOfOwn(o, o.Spec, o.Status)
	case *v1alpha1.Revision:
		return fieldsOfOwn(o, o.Spec, nil)
	default:
		return nil
	}
}
