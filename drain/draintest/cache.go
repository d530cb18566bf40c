// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// Node implements [drain.Cache].
func (c *Cluster) Node(name string) *corev1.Node {
	c.lock()
	defer c.unlock()
	if c.cacheFailure != nil {
		return nil
	}
	return c.nodes.seen[name]
}

// Nodes implements [drain.Cache]; they are in the order of their names.
func (c *Cluster) Nodes() []*corev1.Node {
	c.lock()
	defer c.unlock()
	if c.cacheFailure != nil {
		return nil
	}
	return sorted(c.nodes.seen, nil)
}

// Pods implements [drain.Cache].
func (c *Cluster) Pods(node string) []*corev1.Pod {
	c.lock()
	defer c.unlock()
	if c.cacheFailure != nil {
		return nil
	}
	return sorted(c.pods.seen, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
}

// Pod implements [drain.Cache].
func (c *Cluster) Pod(namespace, name string) *corev1.Pod {
	c.lock()
	defer c.unlock()
	if c.cacheFailure != nil {
		return nil
	}
	return c.pods.seen[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Budgets implements [drain.Cache].
func (c *Cluster) Budgets(namespace string) []*policyv1.PodDisruptionBudget {
	c.lock()
	defer c.unlock()
	if c.cacheFailure != nil {
		return nil
	}
	return sorted(c.budgets.seen, func(b *policyv1.PodDisruptionBudget) bool { return b.Namespace == namespace })
}

// Attachments implements [drain.VolumeCache].
func (c *Cluster) Attachments(node string) []*storagev1.VolumeAttachment {
	c.lock()
	defer c.unlock()
	return sorted(c.attachments.seen, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
}

// Claim implements [drain.VolumeCache].
func (c *Cluster) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	c.lock()
	defer c.unlock()
	return c.claims.seen[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Volume implements [drain.VolumeCache].
func (c *Cluster) Volume(name string) *corev1.PersistentVolume {
	c.lock()
	defer c.unlock()
	return c.volumes.seen[name]
}

// DaemonSet implements [drain.OwnerCache].
func (c *Cluster) DaemonSet(namespace, name string) (types.UID, bool) {
	c.lock()
	defer c.unlock()
	for uid, w := range c.workloads {
		if w.Kind == DaemonSet && w.Namespace == namespace && w.Name == name {
			return uid, true
		}
	}
	return "", false
}

// Check implements [drain.Cache]. It returns what [Cluster.FailCache] was given. A lost watch is not noticed, as by an informer.
func (c *Cluster) Check() error {
	c.lock()
	defer c.unlock()
	return c.cacheFailure
}

// FailCache makes the cache blind: it shows nothing, and Check returns err. Nil ends that.
func (c *Cluster) FailCache(err error) {
	c.lock()
	defer c.unlock()
	c.cacheFailure = err
}

// Watch implements [drain.Cache]. Calls come from [Cluster.Run] alone, one after the other.
func (c *Cluster) Watch(changed func(drain.Change)) (stop func()) {
	c.lock()
	defer c.unlock()
	id := c.nextWatcher
	c.nextWatcher++
	c.watchers[id] = changed
	return func() {
		c.lock()
		defer c.unlock()
		delete(c.watchers, id)
	}
}

// DropWatch freezes the cache as it is, like an informer that has lost its connection.
func (c *Cluster) DropWatch() {
	c.lock()
	defer c.unlock()
	c.dropWatch()
}

func (c *Cluster) dropWatch() {
	c.watchDown = true
	c.epoch++
}

// RestoreWatch brings the cache up to date by a list, as an informer does: what happened in between is seen as one change.
func (c *Cluster) RestoreWatch() {
	c.lock()
	defer c.unlock()
	if !c.watchDown {
		return
	}
	c.watchDown = false
	for _, n := range c.nodes.relist() {
		c.tell(n.Name)
	}
	for _, p := range c.pods.relist() {
		c.tell(p.Spec.NodeName)
	}
	for _, a := range c.attachments.relist() {
		c.tell(a.Spec.NodeName)
	}
	for _, b := range c.budgets.relist() {
		c.news = append(c.news, drain.Change{Budget: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}})
	}
	c.claims.relist()
	c.volumes.relist()
}

func (c *Cluster) tell(node string) {
	if node != "" {
		c.news = append(c.news, drain.Change{Node: node})
	}
}
