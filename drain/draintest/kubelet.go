// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// What pods of a [Cluster] may say of themselves. The values are Go durations.
const (
	// TerminationAnnotation is how long the pod takes to end, instead of [Options].Termination.
	TerminationAnnotation = "draintest.belay.dev/termination"
	// ReadinessAnnotation is how long the pod runs before it is ready, instead of [Options].Readiness; "never" for a pod that
	// does not become ready.
	ReadinessAnnotation = "draintest.belay.dev/readiness"
)

// orphanAge is how long pods of a Node that is gone stay, before the garbage collection of pods removes them.
const orphanAge = 40 * time.Second

// A kubelet is what makes a node's pods start and end.
type kubelet struct {
	stopped bool
	since   time.Time // of the stop
	renewed time.Time // by somebody else, after the stop
}

func (c *Cluster) kubelet(node string) *kubelet {
	k := c.kubelets[node]
	if k == nil {
		k = &kubelet{}
		c.kubelets[node] = k
	}
	return k
}

// StopKubelet stops the kubelet of a node: its pods neither start nor end, and its Lease is renewed no more. As long as nobody else
// renews that, the node becomes NotReady after [NodeGrace], its pods with it, and they are deleted [EvictGrace] later.
func (c *Cluster) StopKubelet(node string) {
	c.lock()
	defer c.unlock()
	k := c.kubelet(node)
	k.stopped, k.since, k.renewed = true, c.now(), time.Time{}
	c.watchLease(node)
}

// StartKubelet starts the kubelet again.
func (c *Cluster) StartKubelet(node string) {
	c.lock()
	defer c.unlock()
	c.kubelet(node).stopped = false
	c.nodeAlive(node)
	for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == node }) {
		c.kubeletFollows(pod)
	}
}

// kubeletFollows plans what the kubelet will do next about a pod.
func (c *Cluster) kubeletFollows(pod *corev1.Pod) {
	if c.o.NoKubelets || pod.Spec.NodeName == "" || c.kubelet(pod.Spec.NodeName).stopped || c.nodes.get(pod.Spec.NodeName) == nil {
		return
	}
	key, uid := keyOf(pod), pod.UID
	switch {
	case pod.DeletionTimestamp != nil:
		c.planEnd(pod)
	case pod.Status.Phase == corev1.PodPending:
		c.enqueue("start "+string(uid), c.o.Startup, func() { c.startPod(key, uid) })
	}
}

// planEnd plans the end of a pod that is being deleted: after its own time, at most after its grace period.
func (c *Cluster) planEnd(pod *corev1.Pod) {
	key, uid := keyOf(pod), pod.UID
	takes := durationOf(pod, TerminationAnnotation, c.o.Termination)
	takes = min(takes, time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0))*time.Second)
	end := c.now().Add(takes)
	if planned, ok := c.ends[uid]; ok && planned.Before(end) {
		end = planned
	}
	c.ends[uid] = end
	c.enqueue("end "+string(uid), end.Sub(c.now()), func() { c.endPod(key, uid) })
}

// endPod is the kubelet's last word: the pod has ended, and with no finalizer the object goes.
func (c *Cluster) endPod(key types.NamespacedName, uid types.UID) {
	pod := c.pods.get(key)
	if pod == nil || pod.UID != uid || c.kubelet(pod.Spec.NodeName).stopped {
		return
	}
	if ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) > 0 {
		return
	}
	if !finished(pod) && len(pod.Finalizers) > 0 {
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodSucceeded
		setReady(pod, false, c.now())
		c.putPod(pod)
	}
	// It can only fail for a pod that is gone.
	_ = c.deletePod(eviction{key: key, uid: uid, grace: ptr.To[int64](0)})
}

func (c *Cluster) startPod(key types.NamespacedName, uid types.UID) {
	pod := c.pods.get(key)
	if pod == nil || pod.UID != uid || pod.Status.Phase != corev1.PodPending || c.kubelet(pod.Spec.NodeName).stopped {
		return
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = ptr.To(stamp(c.now()))
	setReady(pod, false, c.now())
	c.putPod(pod)
	if pod.Annotations[ReadinessAnnotation] == "never" {
		return
	}
	c.enqueue("ready "+string(uid), durationOf(pod, ReadinessAnnotation, c.o.Readiness), func() {
		c.changePod(key, func(p *corev1.Pod) {
			if p.UID == uid && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				setReady(p, true, c.now())
			}
		})
	})
}

// orphanPods plans the end of the pods of a node that is gone.
func (c *Cluster) orphanPods(node string) {
	c.enqueue("orphans "+node, orphanAge, func() {
		if c.nodes.get(node) != nil {
			return
		}
		for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == node }) {
			_ = c.deletePod(eviction{key: keyOf(pod), uid: pod.UID, grace: ptr.To[int64](0)}) // fails only for a pod that is gone
		}
	})
}

func durationOf(pod *corev1.Pod, annotation string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[annotation]); err == nil {
		return d
	}
	return usual
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
