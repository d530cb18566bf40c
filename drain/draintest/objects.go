// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// MinAvailable returns a budget that keeps that many pods with the labels: a number, "2", or a percent, "50%". It is in no cluster.
func MinAvailable(namespace, name, n string, labels map[string]string, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := newBudget(namespace, name, labels)
	b.Spec.MinAvailable = ptr.To(intstr.Parse(n))
	return changed(b, changes)
}

// MaxUnavailable returns a budget that lets that many of the pods with the labels be away.
func MaxUnavailable(namespace, name, n string, labels map[string]string, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := newBudget(namespace, name, labels)
	b.Spec.MaxUnavailable = ptr.To(intstr.Parse(n))
	return changed(b, changes)
}

// AlwaysAllow lets unready pods go under any circumstances, for [MinAvailable] and [MaxUnavailable].
func AlwaysAllow(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func newBudget(namespace, name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
}

func changed[T any](o T, changes []func(T)) T {
	for _, change := range changes {
		change(o)
	}
	return o
}

// AddBudget creates a budget. One of the same name is replaced.
func (c *Cluster) AddBudget(b *policyv1.PodDisruptionBudget) {
	c.lock()
	defer c.unlock()
	b = b.DeepCopy()
	b.UID, b.Generation, b.CreationTimestamp = c.newUID("budget"), 1, stamp(c.now())
	c.putBudget(b)
}

// UpdateBudget changes a budget: its spec, which makes its status stale until the disruption controller has seen it, or the status
// itself, which that overwrites unless it is paused. It does nothing where there is no such budget.
func (c *Cluster) UpdateBudget(namespace, name string, change func(*policyv1.PodDisruptionBudget)) {
	c.lock()
	defer c.unlock()
	old := c.budgets.get(types.NamespacedName{Namespace: namespace, Name: name})
	if old == nil {
		return
	}
	b := old.DeepCopy()
	change(b)
	if !equality.Semantic.DeepEqual(old.Spec, b.Spec) {
		b.Generation++
	}
	c.putBudget(b)
}

// DeleteBudget deletes a budget.
func (c *Cluster) DeleteBudget(namespace, name string) {
	c.lock()
	defer c.unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	drop(c, &c.budgets, key, drain.Change{Budget: key})
}

// LiveBudget returns the budget as the server has it, or nil.
func (c *Cluster) LiveBudget(namespace, name string) *policyv1.PodDisruptionBudget {
	c.lock()
	defer c.unlock()
	return c.budgets.get(types.NamespacedName{Namespace: namespace, Name: name})
}

// TerminateNamespace begins the deletion of a namespace: evictions in it are refused from now on. Its pods are not deleted.
func (c *Cluster) TerminateNamespace(name string) {
	c.lock()
	defer c.unlock()
	c.terminating[name] = true
}

// AddAttachment creates or replaces a VolumeAttachment, RemoveAttachment removes it: volumes attach and detach by no other hand.
func (c *Cluster) AddAttachment(a *storagev1.VolumeAttachment) {
	c.lock()
	defer c.unlock()
	put(c, &c.attachments, a.Name, a.DeepCopy(), drain.Change{Node: a.Spec.NodeName})
}

// RemoveAttachment removes a VolumeAttachment.
func (c *Cluster) RemoveAttachment(name string) {
	c.lock()
	defer c.unlock()
	if a := c.attachments.get(name); a != nil {
		drop(c, &c.attachments, name, drain.Change{Node: a.Spec.NodeName})
	}
}

// AddClaim creates or replaces a PersistentVolumeClaim.
func (c *Cluster) AddClaim(claim *corev1.PersistentVolumeClaim) {
	c.lock()
	defer c.unlock()
	put(c, &c.claims, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, claim.DeepCopy())
}

// AddVolume creates or replaces a PersistentVolume.
func (c *Cluster) AddVolume(volume *corev1.PersistentVolume) {
	c.lock()
	defer c.unlock()
	put(c, &c.volumes, volume.Name, volume.DeepCopy())
}
