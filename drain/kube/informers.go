// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
)

// An Informer is a shared informer that its owner runs: a cache.SharedIndexInformer of client-go, or what GetInformer
// of a controller-runtime cache returns. It must watch the whole cluster, except for [CacheOptions].Node, and keep what
// [Transform] keeps.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
	AddIndexers(indexers cache.Indexers) error
	HasSynced() bool
	IsStopped() bool
}

// Informers are the informers of an embedder. Pods, Nodes and Budgets are required; DaemonSets makes the Cache a
// [drain.OwnerCache], and Attachments, Claims and Volumes together make it a [drain.VolumeCache].
type Informers struct {
	Pods    Informer // of corev1.Pod
	Nodes   Informer // of corev1.Node
	Budgets Informer // of policyv1.PodDisruptionBudget

	DaemonSets  Informer // of appsv1.DaemonSet
	Attachments Informer // of storagev1.VolumeAttachment
	Claims      Informer // of corev1.PersistentVolumeClaim
	Volumes     Informer // of corev1.PersistentVolume
	Namespaces  Informer // of corev1.Namespace, for rules with a NamespaceSelector
}

// NewCacheFromInformers returns a Cache over informers that somebody else runs, so that a process has one watch of each
// kind of object. It adds an index and a handler to them, keeps no copy of an object, and leaves their transforms and
// handlers of watch errors alone. It may be called before they are started or after.
//
// What the informers show is compared with the server once, by the client, in [Cache.WaitForSync]: until that has been
// called, [Cache.Check] returns an error, so that no drain relies on an informer that drops fields or selects too
// little.
func NewCacheFromInformers(client kubernetes.Interface, from Informers, o CacheOptions) (*Cache, error) {
	check := option.For("drain/kube.NewCacheFromInformers", nil)
	check.Require("client", client, "see k8s.io/client-go/kubernetes.NewForConfig")
	for _, p := range from.parts() {
		wanted := p.required || o.DaemonSets && p.resource == "daemonsets" ||
			o.Namespaces && p.resource == "namespaces" || (o.Volumes || from.hasVolumes()) && p.ofVolumes
		if wanted || p.informer != nil { // the latter finds a nil pointer in an interface
			check.Require("Informers."+p.field, p.informer, "an informer of "+p.resource+" for the whole cluster")
		}
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	c := &Cache{node: o.Node, client: client, annotations: o.Annotations}
	if err := c.addAll(from, false); err != nil {
		return nil, fmt.Errorf("drain/kube.NewCacheFromInformers: %w", err)
	}
	return c, nil
}

func (from Informers) hasVolumes() bool {
	return from.Attachments != nil || from.Claims != nil || from.Volumes != nil
}

// part is one kind of object that a Cache watches.
type part struct {
	informer            Informer
	field, resource     string
	required, ofVolumes bool
	indexBy             func(obj any) string // for byNode; nil for none
	node                func(obj any) string // what a change is reported as; nil where changes are not reported as a node
	store               func(c *Cache) *cache.Indexer
}

func (from Informers) parts() []part {
	return []part{
		{informer: from.Nodes, field: "Nodes", resource: "nodes", required: true, node: nodeOfNode,
			store: func(c *Cache) *cache.Indexer { return &c.nodes }},
		{informer: from.Pods, field: "Pods", resource: "pods", required: true, node: nodeOfPod, indexBy: nodeOrUnbound,
			store: func(c *Cache) *cache.Indexer { return &c.pods }},
		{informer: from.Budgets, field: "Budgets", resource: "poddisruptionbudgets", required: true,
			store: func(c *Cache) *cache.Indexer { return &c.budgets }},
		{informer: from.Attachments, field: "Attachments", resource: "volumeattachments", ofVolumes: true,
			node: nodeOfAttachment, indexBy: nodeOfAttachment, store: func(c *Cache) *cache.Indexer { return &c.attachments }},
		{informer: from.Claims, field: "Claims", resource: "persistentvolumeclaims", ofVolumes: true,
			store: func(c *Cache) *cache.Indexer { return &c.claims }},
		{informer: from.Volumes, field: "Volumes", resource: "persistentvolumes", ofVolumes: true,
			store: func(c *Cache) *cache.Indexer { return &c.persistentVolumes }},
		{informer: from.DaemonSets, field: "DaemonSets", resource: "daemonsets",
			store: func(c *Cache) *cache.Indexer { return &c.daemonSets }},
		{informer: from.Namespaces, field: "Namespaces", resource: "namespaces",
			store: func(c *Cache) *cache.Indexer { return &c.namespaces }},
	}
}

// addAll adds the informers that there are. After an error none of its handlers is left.
func (c *Cache) addAll(from Informers, ofFactory bool) error {
	for _, p := range from.parts() {
		if p.informer == nil {
			continue
		}
		if err := c.add(p, ofFactory); err != nil {
			c.Close()
			return err
		}
	}
	return nil
}

// add adds an index and a handler to the informer of a part.
func (c *Cache) add(p part, ofFactory bool) error {
	inf := &informer{Informer: p.informer, resource: p.resource}
	if !ofFactory {
		inf.option = "Informers." + p.field
	}
	if inf.IsStopped() {
		return inf.wrong(inf.HasSynced(), ErrInformerStopped)
	}
	shared, ok := p.informer.(interface{ GetIndexer() cache.Indexer })
	if !ok {
		return inf.wrong(inf.HasSynced(), errNoStore)
	}
	store := shared.GetIndexer()
	for name, index := range p.indexers() {
		// Another user of the informer may add the same index in between.
		if store.GetIndexers()[name] != nil {
			continue
		}
		if err := inf.AddIndexers(cache.Indexers{name: index}); err != nil && store.GetIndexers()[name] == nil {
			return inf.wrong(inf.HasSynced(), fmt.Errorf("adding an index: %w", err))
		}
	}
	if ofFactory {
		inf.noteFailures()
	}
	handler, err := inf.AddEventHandler(c.watchers.handler(p.node))
	if err != nil {
		return inf.wrong(inf.HasSynced(), fmt.Errorf("adding a handler: %w", err))
	}
	inf.handler = handler
	*p.store(c) = store
	c.informers = append(c.informers, inf)
	return nil
}

// indexers are the indices that the Cache reads a part by.
func (p *part) indexers() cache.Indexers {
	switch {
	case p.resource == "pods":
		return cache.Indexers{
			byNode:               func(obj any) ([]string, error) { return present(p.indexBy(obj)), nil },
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		}
	case p.indexBy != nil:
		return cache.Indexers{byNode: func(obj any) ([]string, error) { return present(p.indexBy(obj)), nil }}
	case p.resource == "poddisruptionbudgets":
		return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	default:
		return nil
	}
}

// noteFailures takes over the handler of watch errors of an informer that has not been started. One that runs keeps its
// own.
func (i *informer) noteFailures() {
	s, ok := i.Informer.(interface {
		SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error
	})
	if ok {
		_ = s.SetWatchErrorHandlerWithContext(i.failed) // the one error: the informer has been started
	}
}

// Close removes the handlers from the informers and leaves these running. The Cache cannot be used any more.
func (c *Cache) Close() {
	c.state.close()
	for _, i := range c.informers {
		_ = i.RemoveEventHandler(i.handler) // the one error is that of a handler which is not there
	}
}
