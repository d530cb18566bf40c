// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// defaultGrace is the grace period that the server gives a pod that asks for none.
const defaultGrace = 30

// NewPod returns a pod as the server would have it: running and ready on the node, with a grace period of 30 s, or pending where
// node is empty. It is in no cluster.
func NewPod(namespace, name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](defaultGrace),
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if node != "" {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// AddPod creates the pod of [NewPod]. One of the same name is removed first: the new one has another UID.
func (c *Cluster) AddPod(namespace, name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.lock()
	defer c.unlock()
	return c.addPod(NewPod(namespace, name, node, changes...))
}

func (c *Cluster) addPod(pod *corev1.Pod) *corev1.Pod {
	if old := c.pods.get(keyOf(pod)); old != nil {
		c.dropPod(old)
	}
	if pod.UID == "" {
		pod.UID = c.newUID("pod")
	}
	if pod.CreationTimestamp.IsZero() {
		pod.CreationTimestamp = stamp(c.now())
	}
	return c.putPod(pod)
}

// UpdatePod changes a pod, as somebody else than the Drainer. Without finalizers, a pod that is being deleted and has ended goes. It
// does nothing where there is no such pod.
func (c *Cluster) UpdatePod(namespace, name string, change func(*corev1.Pod)) {
	c.lock()
	defer c.unlock()
	c.changePod(types.NamespacedName{Namespace: namespace, Name: name}, change)
}

// SetReady makes a pod ready or not.
func (c *Cluster) SetReady(namespace, name string, ready bool) {
	c.UpdatePod(namespace, name, func(p *corev1.Pod) { setReady(p, ready, c.now()) })
}

// SetPhase sets the phase of a pod.
func (c *Cluster) SetPhase(namespace, name string, phase corev1.PodPhase) {
	c.UpdatePod(namespace, name, func(p *corev1.Pod) { p.Status.Phase = phase })
}

// Finish removes a pod at once, as its kubelet does when it has ended: finalizers still hold it.
func (c *Cluster) Finish(namespace, name string) {
	c.lock()
	defer c.unlock()
	_ = c.deletePod(eviction{key: types.NamespacedName{Namespace: namespace, Name: name}, grace: ptr.To[int64](0)}) // fails only for none
}

// LivePod returns the pod as the server has it, or nil: what the cache will show when it is up to date.
func (c *Cluster) LivePod(namespace, name string) *corev1.Pod {
	c.lock()
	defer c.unlock()
	return c.pods.get(types.NamespacedName{Namespace: namespace, Name: name})
}

// LivePods returns the pods of a node, or all for "", as the server has them.
func (c *Cluster) LivePods(node string) []*corev1.Pod {
	c.lock()
	defer c.unlock()
	return sorted(c.pods.live, func(p *corev1.Pod) bool { return node == "" || p.Spec.NodeName == node })
}

func (c *Cluster) changePod(key types.NamespacedName, change func(*corev1.Pod)) {
	old := c.pods.get(key)
	if old == nil {
		return
	}
	pod := old.DeepCopy()
	change(pod)
	if equality.Semantic.DeepEqual(old, pod) {
		return
	}
	if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) == 0 {
		c.dropPod(pod)
		return
	}
	c.putPod(pod)
}

func (c *Cluster) putPod(pod *corev1.Pod) *corev1.Pod {
	if old := c.pods.get(keyOf(pod)); old != nil && !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {
		c.budgetsFollow(old)
	}
	pod = put(c, &c.pods, keyOf(pod), pod, nodeChange(pod)...)
	c.podFollows(pod)
	if pod.Spec.NodeName == "" {
		c.enqueue("schedule", c.o.ControllerLag, c.schedule)
	}
	c.kubeletFollows(pod)
	return pod
}

func (c *Cluster) dropPod(pod *corev1.Pod) {
	drop(c, &c.pods, keyOf(pod), nodeChange(pod)...)
	delete(c.ends, pod.UID)
	c.podFollows(pod)
}

// podFollows wakes the controllers that look at the pod.
func (c *Cluster) podFollows(pod *corev1.Pod) {
	c.budgetsFollow(pod)
	if owner := metav1.GetControllerOf(pod); owner != nil {
		c.enqueueWorkload(owner.UID)
	}
}

func nodeChange(pod *corev1.Pod) []drain.Change {
	if pod.Spec.NodeName == "" {
		return nil
	}
	return []drain.Change{{Node: pod.Spec.NodeName}}
}
