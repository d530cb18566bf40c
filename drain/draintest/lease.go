// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// The times of the node lifecycle controller, as they are by default.
const (
	// NodeGrace is how old a Lease may be before its Node becomes NotReady.
	NodeGrace = 50 * time.Second
	// EvictGrace is how long pods stay on a Node that is NotReady.
	EvictGrace = 300 * time.Second
	// leaseInterval is how often a kubelet renews its Lease.
	leaseInterval = 10 * time.Second
)

// Renew implements [drain.LeaseKeeper]: the Lease of a node whose kubelet runs is left to it.
func (c *Cluster) Renew(ctx context.Context, node string) error {
	return c.call(ctx, Call{Verb: Renew, Object: node}, func() (bool, error) {
		c.lock()
		defer c.unlock()
		if c.nodes.get(node) == nil {
			return false, apierrors.NewNotFound(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, node)
		}
		if k := c.kubelet(node); k.stopped {
			k.renewed = c.now()
			c.nodeAlive(node)
			c.watchLease(node)
		}
		return false, nil
	})
}

// LeaseRenewed returns when the Lease of a node was last renewed, by its kubelet or by [Cluster.Renew].
func (c *Cluster) LeaseRenewed(node string) time.Time {
	c.lock()
	defer c.unlock()
	k := c.kubelet(node)
	switch {
	case !k.stopped:
		return c.now().Truncate(leaseInterval)
	case k.renewed.IsZero():
		return k.since
	default:
		return k.renewed
	}
}

// watchLease plans what happens when nobody renews the Lease from now on.
func (c *Cluster) watchLease(node string) {
	seen := c.now()
	c.after(NodeGrace, func() {
		k := c.kubelet(node)
		if !k.stopped || k.renewed.After(seen) || k.since.After(seen) {
			return
		}
		c.nodeDead(node)
		c.after(EvictGrace, func() { c.evictDead(node) })
	})
}

// nodeDead is the node lifecycle controller giving up on a node.
func (c *Cluster) nodeDead(node string) {
	c.changeNode(node, func(n *corev1.Node) {
		setNodeCondition(n, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}, c.now())
		setTaint(n, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}, true)
	})
	for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == node && isReady(p) }) {
		c.changePod(keyOf(pod), func(p *corev1.Pod) { setReady(p, false, c.now()) })
	}
}

// nodeAlive takes that back.
func (c *Cluster) nodeAlive(node string) {
	n := c.nodes.get(node)
	if n == nil || nodeReady(n) {
		return
	}
	c.changeNode(node, func(n *corev1.Node) {
		setNodeCondition(n, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}, c.now())
		setTaint(n, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}, false)
	})
}

// evictDead deletes the pods of a node that is still given up. Nobody ends them there: they stay, marked.
func (c *Cluster) evictDead(node string) {
	if n := c.nodes.get(node); n == nil || nodeReady(n) {
		return
	}
	for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == node && p.DeletionTimestamp == nil }) {
		_ = c.deletePod(eviction{key: keyOf(pod), uid: pod.UID, grace: ptr.To(graceOf(pod, nil))}) // fails only for a pod that is gone
	}
}
