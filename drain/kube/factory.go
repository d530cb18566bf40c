// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/watch"
)

// NewFactory returns a factory whose informers keep no more of an object than a drain reads, see [Transform], besides
// [CacheOptions].Annotations, and, with
// [CacheOptions].Node, ask the API server for that Node and its pods only. Give the same options to [NewCache]. Other users of the
// factory get the same objects.
func NewFactory(client kubernetes.Interface, o CacheOptions) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transformOf(o)))
	if o.Node == "" {
		return factory
	}
	// The factory gives whoever asks for an informer the one that was made first.
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		onNode := watch.SelectField("spec.nodeName", o.Node)
		return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, indexers, onNode)
	})
	factory.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{}, watch.SelectName(o.Node))
	})
	return factory
}
