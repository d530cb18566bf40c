// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
)

// AddNode creates a Node that is ready, after the given changes to it. One of the same name is replaced: the new one has another UID.
func (c *Cluster) AddNode(name string, changes ...func(*corev1.Node)) *corev1.Node {
	c.lock()
	defer c.unlock()
	if c.nodes.get(name) != nil {
		c.deleteNode(name)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: c.newUID("node"), CreationTimestamp: stamp(c.now()), Labels: map[string]string{corev1.LabelHostname: name},
	}}
	setNodeCondition(node, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}, c.now())
	for _, change := range changes {
		change(node)
	}
	c.kubelets[name] = &kubelet{}
	c.putNode(node)
	for _, pod := range sorted(c.pods.live, func(p *corev1.Pod) bool { return p.Spec.NodeName == name }) {
		c.kubeletFollows(pod)
	}
	return c.nodes.get(name)
}

// DeleteNode deletes a Node. Its pods go some time later, as they do when nobody else deletes them.
func (c *Cluster) DeleteNode(name string) {
	c.lock()
	defer c.unlock()
	c.deleteNode(name)
}

func (c *Cluster) deleteNode(name string) {
	drop(c, &c.nodes, name, drain.Change{Node: name})
	c.orphanPods(name)
}

// UpdateNode changes a Node, as somebody else than the Drainer. It does nothing where there is none.
func (c *Cluster) UpdateNode(name string, change func(*corev1.Node)) {
	c.lock()
	defer c.unlock()
	c.changeNode(name, func(node *corev1.Node) {
		old := node.DeepCopy()
		change(node)
		trackOwners(old, node, otherManager)
	})
}

// LiveNode returns the Node as the server has it, or nil: what the cache will show when it is up to date.
func (c *Cluster) LiveNode(name string) *corev1.Node {
	c.lock()
	defer c.unlock()
	return c.nodes.get(name)
}

func (c *Cluster) changeNode(name string, change func(*corev1.Node)) {
	if node := c.nodes.get(name); node != nil {
		node = node.DeepCopy()
		change(node)
		c.putNode(node)
	}
}

func (c *Cluster) putNode(node *corev1.Node) *corev1.Node {
	name := node.Name
	node = put(c, &c.nodes, name, node, drain.Change{Node: name})
	c.enqueue("taint "+name, c.o.ControllerLag, func() { c.taintCordoned(name) })
	c.enqueue("schedule", c.o.ControllerLag, c.schedule)
	for uid := range c.workloads {
		c.enqueueWorkload(uid)
	}
	return node
}

// taintCordoned keeps the taint of nodes that are cordoned, as the node lifecycle controller does: one more write to the Node, right
// after the cordon.
func (c *Cluster) taintCordoned(name string) {
	node := c.nodes.get(name)
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node == nil || hasTaint(node, taint) == node.Spec.Unschedulable {
		return
	}
	c.changeNode(name, func(n *corev1.Node) { setTaint(n, taint, n.Spec.Unschedulable) })
}

func hasTaint(node *corev1.Node, taint corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

func setTaint(node *corev1.Node, taint corev1.Taint, want bool) {
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	if want {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(cond corev1.NodeCondition) bool {
		return cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue
	})
}

// The field managers of the writes to a Node: those of the Drainer, and those of other clients.
const (
	drainerManager = "belay-drain"
	otherManager   = "kubectl"
)

// trackOwners keeps the managedFields of what a drain asks for: who has set the cordon and the mark. As on a real API
// server, a write owns the fields that it changes. One that is not there has no owner.
func trackOwners(old, node *corev1.Node, manager string) {
	markOf := func(n *corev1.Node) string { return n.Annotations[drain.MarkAnnotation] }
	owners := slices.Clone(old.ManagedFields)
	if old.Spec.Unschedulable != node.Spec.Unschedulable {
		owners = setOwner(owners, `{"f:spec":{"f:unschedulable":{}}}`, manager, node.Spec.Unschedulable)
	}
	if markOf(old) != markOf(node) {
		fields := fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%s":{}}}}`, drain.MarkAnnotation)
		owners = setOwner(owners, fields, manager, markOf(node) != "")
	}
	node.ManagedFields = owners
}

// setOwner makes the manager the only owner of the fields, or takes them from all owners.
func setOwner(owners []metav1.ManagedFieldsEntry, fields, manager string, there bool) []metav1.ManagedFieldsEntry {
	owned := &metav1.FieldsV1{} // it has no constructor in the oldest supported release, and no public field in the newest
	if err := owned.UnmarshalJSON([]byte(fields)); err != nil {
		panic(err)
	}
	owners = slices.DeleteFunc(owners, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1.String() == owned.String()
	})
	if !there {
		return owners
	}
	return append(owners, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: owned,
	})
}
