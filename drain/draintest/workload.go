// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The kinds of a [Workload].
const (
	ReplicaSet  = "ReplicaSet"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
)

// A Workload is an owner of pods, and what keeps their number.
type Workload struct {
	// Kind is ReplicaSet, which is the default: a pod is replaced, under another name, as soon as it is being deleted; StatefulSet: under
	// the same name, when it is gone; or DaemonSet: one pod on every node, whether that is cordoned or not.
	Kind      string
	Namespace string // default: "default"
	Name      string
	Replicas  int
	// Labels are on every pod; nil means app=Name.
	Labels map[string]string
	// On names the nodes of the first pods, one after the other; empty means those with the fewest pods.
	On []string
	// Change, when set, changes every new pod.
	Change func(*corev1.Pod)
	// Scale is all there is: no pod is ever created. The test adds them, with [OwnedBy].
	Scale bool
}

// A workload is one that is in a cluster.
type workload struct {
	Workload
	uid     types.UID
	created int
}

// AddWorkload adds a workload with its pods, which run and are ready, and returns its UID.
func (c *Cluster) AddWorkload(w Workload) types.UID {
	w.Kind = cmp.Or(w.Kind, ReplicaSet)
	w.Namespace = cmp.Or(w.Namespace, metav1.NamespaceDefault)
	if w.Labels == nil {
		w.Labels = map[string]string{"app": w.Name}
	}
	c.lock()
	defer c.unlock()
	uid := c.newUID("owner")
	in := &workload{Workload: w, uid: uid}
	c.workloads[uid] = in
	for i := range w.Replicas {
		if w.Scale || w.Kind == DaemonSet {
			break
		}
		pod := c.newReplica(in)
		node := c.nodeFor(pod)
		if len(w.On) > 0 {
			node = w.On[i%len(w.On)]
		}
		bind(pod, node)
		if node != "" {
			pod.Status.Phase = corev1.PodRunning
			setReady(pod, pod.Annotations[ReadinessAnnotation] != "never", c.now())
		}
		c.addPod(pod)
	}
	c.enqueueWorkload(uid)
	return uid
}

// Scale changes the number of a workload's replicas. Pods that are too many stay: nothing here deletes them.
func (c *Cluster) Scale(uid types.UID, replicas int) {
	c.lock()
	defer c.unlock()
	if w := c.workloads[uid]; w != nil {
		w.Replicas = replicas
		c.enqueueWorkload(uid)
		for _, pod := range c.podsOf(uid) {
			c.budgetsFollow(pod)
		}
	}
}

// RemoveWorkload removes the owner and leaves its pods as orphans.
func (c *Cluster) RemoveWorkload(uid types.UID) {
	c.lock()
	defer c.unlock()
	delete(c.workloads, uid)
	for _, pod := range c.podsOf(uid) {
		c.budgetsFollow(pod)
	}
}

// OwnedBy makes a pod one of a workload, for [NewPod].
func OwnedBy(kind, name string, uid types.UID) func(*corev1.Pod) {
	version := "apps/v1"
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
	}
}

func (c *Cluster) podsOf(uid types.UID) []*corev1.Pod {
	return sorted(c.pods.live, func(p *corev1.Pod) bool {
		owner := metav1.GetControllerOf(p)
		return owner != nil && owner.UID == uid
	})
}

func (c *Cluster) enqueueWorkload(uid types.UID) {
	if c.workloads[uid] != nil {
		c.enqueue("workload "+string(uid), c.o.ControllerLag, func() { c.syncWorkload(uid) })
	}
}

// syncWorkload creates the pods that a workload lacks.
func (c *Cluster) syncWorkload(uid types.UID) {
	w := c.workloads[uid]
	if w == nil || w.Scale {
		return
	}
	pods := c.podsOf(uid)
	switch w.Kind {
	case DaemonSet:
		c.syncDaemons(w, pods)
	case StatefulSet:
		for i := range w.Replicas {
			name := fmt.Sprintf("%s-%d", w.Name, i)
			if c.pods.get(types.NamespacedName{Namespace: w.Namespace, Name: name}) == nil {
				c.addPod(named(c.newReplica(w), name))
			}
		}
	default:
		active := 0
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil && !finished(pod) {
				active++
			}
		}
		for range w.Replicas - active {
			c.addPod(c.newReplica(w))
		}
	}
}

// syncDaemons gives each node that has none a pod. A pod on its way out is waited for, as the real controller does.
func (c *Cluster) syncDaemons(w *workload, pods []*corev1.Pod) {
	for _, node := range sorted(c.nodes.live, nil) {
		has := func(p *corev1.Pod) bool { return p.Spec.NodeName == node.Name }
		if slices.ContainsFunc(pods, has) || hasTaint(node, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}) {
			continue
		}
		pod := c.newReplica(w)
		bind(pod, node.Name)
		c.addPod(pod)
	}
}

// newReplica returns the next pod of a workload, bound to no node.
func (c *Cluster) newReplica(w *workload) *corev1.Pod {
	w.created++
	pod := NewPod(w.Namespace, fmt.Sprintf("%s-%05d", w.Name, w.created), "", OwnedBy(w.Kind, w.Name, w.uid))
	if w.Kind == StatefulSet {
		pod.Name = fmt.Sprintf("%s-%d", w.Name, w.created-1)
	}
	pod.Labels = maps.Clone(w.Labels)
	if w.Change != nil {
		w.Change(pod)
	}
	return pod
}

func named(pod *corev1.Pod, name string) *corev1.Pod {
	pod.Name = name
	return pod
}
