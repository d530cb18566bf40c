// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

const (
	// machineAnnotation is written to a Node with whatever else its machine gives it: the namespace and name of the machine, and the token of the instance.
	machineAnnotation = "machine.belay.dev/machine"
	// givenAnnotation of a Node has the record of what its machine has given to it, a [machine.Given] in JSON.
	givenAnnotation = "machine.belay.dev/given"
	// markAnnotation of a Node means that the annotation which keeps the cluster-autoscaler from it is ours.
	markAnnotation = "machine.belay.dev/no-scale-down"
	// UninitializedTaint may be on a Node from its start, with any effect, as by the kubelet's registerWithTaints. It goes when the checks of the
	// machine's roles have passed, and until then nothing that does not tolerate it runs there.
	UninitializedTaint = "machine.belay.dev/uninitialized"
)

// Nodes reads and writes the Nodes of the workload cluster. Pass it to [controller.New]. Only [NewNodes] makes one; do
// not embed it. While [Run] goes on, it asks every 10 seconds whether the workload API answers, and what the informer
// shows counts only as long as it does. A program with a work queue of its own has no such check.
type Nodes interface {
	controller.Nodes
	// Synced reports whether all Nodes are there that there were at the start.
	Synced() bool

	asStore() *nodeStore
}

// A nodeStore is a [Nodes].
type nodeStore struct {
	client   kubernetes.Interface
	informer Informer
	store    cache.Indexer // of the informer
	configs  Configs

	mu sync.Mutex
	// failing is why the API server does not answer; nil if it does.
	failing error
	lists   lists
}

func (s *nodeStore) asStore() *nodeStore { return s }

// Configs has the config of a Node pointed at a source: [NewConfigs].
type Configs interface {
	// Point makes source, a NodeConfigSource in JSON, that of the Node. An empty one takes away what Point has made it before.
	Point(ctx context.Context, n machine.NodeRef, source []byte) error
}

const byToken = "token"

// An Informer is a shared informer that its owner runs. cache.SharedIndexInformer of client-go satisfies it, and so does what
// GetInformer of a controller-runtime cache returns.
type Informer = informer.Interface

// An InformerError says what is wrong with an [Informer].
type InformerError = informer.Error

// NewNodes returns the Nodes that an informer sees, which its owner starts, before or after. client is that of the workload cluster.
// configs may be nil where no machine has a config source.
func NewNodes(client kubernetes.Interface, of Informer, configs Configs) (Nodes, error) {
	check := option.For("machine/kube.NewNodes", nil)
	check.Require("client", client, "see kubernetes.NewForConfig")
	check.Require("of", of, "factory.Core().V1().Nodes().Informer() of client-go, or GetInformer of a manager's cache")
	if err := check.Err(); err != nil {
		return nil, err
	}
	store, err := informer.Indexer("of", of, cache.Indexers{byToken: indexByToken})
	if err != nil {
		return nil, fmt.Errorf("machine/kube.NewNodes: %w", err)
	}
	return &nodeStore{client: client, informer: of, store: store, configs: configs}, nil
}

func indexByToken(obj any) ([]string, error) {
	if node, ok := obj.(*corev1.Node); ok && node.Spec.ProviderID != "" {
		return []string{provider.TokenOf(node.Spec.ProviderID)}, nil
	}
	return nil, nil
}

// watch has changed called with the token of each Node that has changed, until stop is called; it must not block.
func (s *nodeStore) watch(changed func(token string)) (stop func(), err error) {
	tell := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if n, ok := obj.(*corev1.Node); ok && n.Spec.ProviderID != "" {
			changed(provider.TokenOf(n.Spec.ProviderID))
		}
	}
	handler, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell, UpdateFunc: func(old, obj any) {
			if a, ok := old.(*corev1.Node); !ok || differs(a, obj) {
				tell(obj)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch Nodes: %w", err)
	}
	return func() {
		_ = s.informer.RemoveEventHandler(handler) // of an informer that has stopped there is nothing to remove
	}, nil
}

// differs leaves out what no decision looks at, as the heartbeats of conditions.
func differs(a *corev1.Node, obj any) bool {
	b, ok := obj.(*corev1.Node)
	if !ok {
		return true
	}
	return ready(a) != ready(b) || a.Spec.ProviderID != b.Spec.ProviderID || a.Spec.Unschedulable != b.Spec.Unschedulable ||
		a.Status.NodeInfo != b.Status.NodeInfo || !slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(x, y corev1.Taint) bool { return x.MatchTaint(&y) }) ||
		len(a.Annotations) != len(b.Annotations) || a.Annotations[machineAnnotation] != b.Annotations[machineAnnotation] ||
		a.Annotations[givenAnnotation] != b.Annotations[givenAnnotation] || a.UID != b.UID ||
		!a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}

// Synced reports whether all Nodes are there that there were at the start.
func (s *nodeStore) Synced() bool {
	return s.informer.HasSynced()
}

// Of implements [controller.Nodes], from the cache.
func (s *nodeStore) Of(_ context.Context, token string) ([]machine.Node, error) {
	return s.cached(token)
}

func (s *nodeStore) cached(token string) ([]machine.Node, error) {
	if err := s.away(); err != nil {
		return nil, err
	}
	found, err := s.store.ByIndex(byToken, token)
	if err != nil {
		return nil, fmt.Errorf("look for Nodes of token %q: %w", token, err)
	}
	var nodes []machine.Node
	for _, obj := range found {
		if n, ok := obj.(*corev1.Node); ok {
			nodes = append(nodes, nodeOf(n))
		}
	}
	return nodes, nil
}

// one is the Node of a machine; nil if there is none, or several, or if that can't be known.
func (s *nodeStore) one(m machine.Machine) *machine.Node {
	if nodes, err := s.cached(m.Token); err == nil && len(nodes) == 1 && m.Token != "" {
		return &nodes[0]
	}
	return nil
}

// tokenOf is the token of a Node, by the cache; empty if there is none.
func (s *nodeStore) tokenOf(name string) string {
	obj, _, _ := s.store.GetByKey(name) // the store of an informer has no errors
	n, ok := obj.(*corev1.Node)
	if !ok || n.Spec.ProviderID == "" {
		return ""
	}
	return provider.TokenOf(n.Spec.ProviderID)
}

func (s *nodeStore) away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := informer.CheckStopped("of", s.informer); err != nil {
		return fmt.Errorf("looking at Nodes: %w", err)
	}
	if !s.Synced() {
		return errors.New("the workload API has not listed its Nodes yet")
	}
	if s.failing != nil {
		return fmt.Errorf("the workload API doesn't answer: %w", s.failing)
	}
	return nil
}

// probeEvery asks the workload API whether it answers, until ctx ends: what is seen of Nodes counts only as long as it
// does.
func (s *nodeStore) probeEvery(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := s.probe(ctx)
		s.mu.Lock()
		s.failing = err
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *nodeStore) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	client := s.client.Discovery().RESTClient()
	remedy := "a fake clientset has none"
	if err := option.CheckRequired("machine/kube.Run", "client.Discovery().RESTClient()", client, remedy); err != nil {
		return err
	}
	return client.Get().AbsPath("/livez").Do(ctx).Error()
}

func nodeOf(n *corev1.Node) machine.Node {
	c := machine.Node{
		NodeRef: machine.NodeRef{Name: n.Name, UID: string(n.UID)}, ProviderID: n.Spec.ProviderID, Ready: ready(n), Labels: n.Labels, Annotations: n.Annotations,
		Uninitialized: tainted(n), Given: givenTo(n), Marked: n.Annotations[markAnnotation] != "",
		Boot: n.Status.NodeInfo.BootID, Beat: beat(n),
	}
	for _, t := range n.Spec.Taints {
		c.Taints = append(c.Taints, provider.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	c.Versions.Kubelet = n.Status.NodeInfo.KubeletVersion
	if name, version, ok := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, "://"); ok {
		c.Versions.Runtime = provider.Runtime{Name: name, Version: version}
	}
	for name, version := range map[string]string{"kernel": n.Status.NodeInfo.KernelVersion, "os": n.Status.NodeInfo.OSImage} {
		if version == "" {
			continue
		}
		if c.Versions.Other == nil {
			c.Versions.Other = map[string]string{}
		}
		c.Versions.Other[name] = version
	}
	return c
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// beat is when the kubelet has reported last whether the Node is ready.
func beat(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == UninitializedTaint })
}

// Remove implements [controller.Nodes].
func (s *nodeStore) Remove(ctx context.Context, ref machine.NodeRef) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	uid := types.UID(ref.UID)
	err := s.client.CoreV1().Nodes().Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("it has another UID than %s: %w", ref.UID, fs.ErrExist)
	}
	return err
}

func uidOf(n machine.NodeRef) types.UID { return types.UID(n.UID) }
