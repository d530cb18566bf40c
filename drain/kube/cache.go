// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/option"
)

// CacheOptions say what a [Cache] and its factory watch besides pods, Nodes and PodDisruptionBudgets. The zero value is
// for a controller that uses neither volumes nor the check for orphaned pods of DaemonSets.
type CacheOptions struct {
	// Volumes also watches VolumeAttachments, PersistentVolumeClaims and PersistentVolumes.
	Volumes bool
	// DaemonSets also watches DaemonSets.
	DaemonSets bool
	// Namespaces also watches namespaces, for rules with a NamespaceSelector.
	Namespaces bool
	// Annotations are the keys of annotations that are kept of pods, for rules on annotations, besides those that
	// [drain.PresetRules] reads and those of belay. With [Informers] they are compared with the server.
	Annotations []string
	// Placement has [NewFactory] keep what a scheduler looks at: of pods their affinity, requests and host ports, of Nodes
	// what is allocatable. [EstimateFit] needs it. It watches nothing more, and needs about twice the memory for a pod.
	Placement bool
	// Node, when set, is the only Node that is watched, with its pods, so that an agent doesn't see the cluster.
	// Budgets, and what the fields above add, know no node and are watched whole.
	Node string
}

// CacheOptionsFor returns the options for drains with these policies: what their rules and their other fields read.
func CacheOptionsFor(policies ...drain.Policy) CacheOptions {
	o := CacheOptions{DaemonSets: true}
	for i := range policies {
		p := &policies[i]
		o.Volumes = o.Volumes || p.Volumes || p.Removal != nil
		for j := range p.Rules {
			match := &p.Rules[j].PodMatch
			o.Volumes = o.Volumes || len(match.StorageClasses) > 0 || slices.Contains(match.Volumes, "Local")
			o.Namespaces = o.Namespaces || match.NamespaceSelector != nil
			for _, a := range match.Annotations {
				o.Annotations = append(o.Annotations, a.Key)
			}
		}
	}
	return o
}

// byNode indexes what a Node has; budgets are indexed by [cache.NamespaceIndex].
const byNode = "drain.belay.dev/node"

// unbound is the value in that index of pods without a Node. No Node has such a name.
const unbound = "/"

// A Cache watches by shared informers; [Cache.View] is what a Drainer sees of it. It makes no request but theirs, and those of [Cache.WaitForSync]
// over the informers of an embedder. Its methods may be called from several goroutines.
type Cache struct {
	node      string
	client    kubernetes.Interface // what the informers of an embedder are compared with; nil where they are the package's own
	state     cacheState
	watchers  watchers
	informers []*informer

	nodes, pods, budgets cache.Indexer
	optionalStores
	annotations []string // of pods, which are kept besides those of drains
}

// optionalStores are nil where not asked for.
type optionalStores struct {
	attachments, claims, persistentVolumes, daemonSets, namespaces cache.Indexer
}

var (
	_ drain.Cache       = view{}
	_ drain.VolumeCache = volumes{}
	_ drain.OwnerCache  = owners{}

	_ drain.NamespaceCache = view{}
)

// NewCache returns a Cache over the informers of a factory, which it makes where they are missing. The factory may have
// been started or not; the caller starts it, and calls [Cache.WaitForSync]. Of informers that are not started the Cache
// takes over the handler of watch errors, so that [Cache.Check] can say which right is missing: make one Cache for a
// factory. [NewFactory] makes a factory that needs less memory and sees less than others. For informers with a
// transform or a selector of your own, see [NewCacheFromInformers].
func NewCache(factory informers.SharedInformerFactory, o CacheOptions) (*Cache, error) {
	check := option.For("drain/kube.NewCache", nil)
	check.Require("factory", factory, "see drain/kube.NewFactory, or give your informers to drain/kube.NewCacheFromInformers")
	if err := check.Err(); err != nil {
		return nil, err
	}
	core := factory.Core().V1()
	from := Informers{
		Nodes: core.Nodes().Informer(), Pods: core.Pods().Informer(), Budgets: factory.Policy().V1().PodDisruptionBudgets().Informer(),
	}
	if o.Volumes {
		from.Attachments = factory.Storage().V1().VolumeAttachments().Informer()
		from.Claims, from.Volumes = core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()
	}
	if o.DaemonSets {
		from.DaemonSets = factory.Apps().V1().DaemonSets().Informer()
	}
	if o.Namespaces {
		from.Namespaces = core.Namespaces().Informer()
	}
	c := &Cache{node: o.Node, annotations: o.Annotations}
	if err := c.addAll(from, true); err != nil {
		return nil, fmt.Errorf("drain/kube.NewCache: %w", err)
	}
	return c, nil
}

// View returns what the Cache was asked to watch: a [drain.VolumeCache] as well with [CacheOptions].Volumes, and a
// [drain.OwnerCache] with [CacheOptions].DaemonSets. It is neither without, so that what isn't watched is not taken for what
// doesn't exist.
func (c *Cache) View() drain.Cache {
	if c.nodes == nil {
		return nil
	}
	switch {
	case c.attachments != nil && c.daemonSets != nil:
		return struct {
			view
			volumes
			owners
		}{view{c}, volumes{c}, owners{c}}
	case c.attachments != nil:
		return struct {
			view
			volumes
		}{view{c}, volumes{c}}
	case c.daemonSets != nil:
		return struct {
			view
			owners
		}{view{c}, owners{c}}
	default:
		return view{c}
	}
}

// A view is the [drain.Cache] of what every Cache watches.
type view struct{ *Cache }

// Node returns the Node of that name, or nil.
func (c view) Node(name string) *corev1.Node {
	if !c.sees(name) {
		return nil
	}
	return get[*corev1.Node](c.nodes, "", name)
}

// Nodes returns every Node that is watched.
func (c view) Nodes() []*corev1.Node {
	if c.node == "" {
		return typed[*corev1.Node](c.nodes.List())
	}
	if node := c.Node(c.node); node != nil {
		return []*corev1.Node{node}
	}
	return nil
}

// Pods returns the pods bound to a node, in any order.
func (c view) Pods(node string) []*corev1.Pod {
	if !c.sees(node) {
		return nil
	}
	return indexed[*corev1.Pod](c.pods, byNode, node)
}

// UnboundPods returns the pods that are bound to no node. With [CacheOptions].Node they are not known.
func (c view) UnboundPods() (pods []*corev1.Pod, known bool) {
	if c.node != "" {
		return nil, false
	}
	return indexed[*corev1.Pod](c.pods, byNode, unbound), true
}

// PodsIn returns the pods of a namespace, bound to a node or not. With [CacheOptions].Node they are not known.
func (c view) PodsIn(namespace string) []*corev1.Pod {
	if c.node != "" {
		return nil
	}
	return indexed[*corev1.Pod](c.pods, cache.NamespaceIndex, namespace)
}

// Pod returns the pod of that name, or nil. With [CacheOptions].Node it knows the pods of that node only.
func (c view) Pod(namespace, name string) *corev1.Pod {
	pod := get[*corev1.Pod](c.pods, namespace, name)
	if pod == nil || !c.sees(pod.Spec.NodeName) {
		return nil
	}
	return pod
}

// FindNamespace returns the namespace of that name, or nil. If known is false, namespaces are not watched.
func (c view) FindNamespace(name string) (namespace *corev1.Namespace, known bool) {
	if c.namespaces == nil {
		return nil, false
	}
	return get[*corev1.Namespace](c.namespaces, "", name), true
}

// KeepsAnnotation reports whether an annotation of a pod is kept. What the informers of an embedder keep is theirs.
func (c view) KeepsAnnotation(key string) bool {
	return c.client != nil || isKept(key, c.annotations)
}

// Budgets returns the PodDisruptionBudgets of a namespace.
func (c view) Budgets(namespace string) []*policyv1.PodDisruptionBudget {
	return indexed[*policyv1.PodDisruptionBudget](c.budgets, cache.NamespaceIndex, namespace)
}

// sees says whether a node is in the Cache's view, also over a factory that watches more.
func (c *Cache) sees(node string) bool { return c.node == "" || c.node == node }

// volumes is the part of a [drain.VolumeCache].
type volumes struct{ c *Cache }

// Attachments returns the VolumeAttachments of a node.
func (v volumes) Attachments(node string) []*storagev1.VolumeAttachment {
	if !v.c.sees(node) {
		return nil
	}
	return indexed[*storagev1.VolumeAttachment](v.c.attachments, byNode, node)
}

// Claim returns the PersistentVolumeClaim of that name, or nil.
func (v volumes) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return get[*corev1.PersistentVolumeClaim](v.c.claims, namespace, name)
}

// Volume returns the PersistentVolume of that name, or nil.
func (v volumes) Volume(name string) *corev1.PersistentVolume {
	return get[*corev1.PersistentVolume](v.c.persistentVolumes, "", name)
}

// owners is the part of a [drain.OwnerCache].
type owners struct{ c *Cache }

// DaemonSet returns the UID of the DaemonSet of that name, if there is one.
func (o owners) DaemonSet(namespace, name string) (types.UID, bool) {
	if set := get[interface{ GetUID() types.UID }](o.c.daemonSets, namespace, name); set != nil {
		return set.GetUID(), true
	}
	return "", false
}

// get returns the zero value where there is no such object.
func get[T any](store cache.Indexer, namespace, name string) T {
	obj, _, _ := store.GetByKey(cache.NewObjectName(namespace, name).String()) // a store in memory has no errors
	t, _ := obj.(T)
	return t
}

// indexed is nil for an index that doesn't exist, which NewCache has ruled out.
func indexed[T any](store cache.Indexer, index, value string) []T {
	objs, _ := store.ByIndex(index, value)
	return typed[T](objs)
}

func typed[T any](objs []any) []T {
	ts := make([]T, 0, len(objs))
	for _, obj := range objs {
		if t, ok := obj.(T); ok {
			ts = append(ts, t)
		}
	}
	return ts
}
