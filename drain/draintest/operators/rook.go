// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const rookSource = "https://github.com/rook/rook/blob/master/design/ceph/ceph-managed-disruptionbudgets.md"

// osdBudget is the default budget, and the beginning of the names of the others.
const osdBudget = "rook-ceph-osd"

// rook has two OSDs on each node, which are its failure domains.
//
//   - The default budget "rook-ceph-osd" is maxUnavailable 1 for all OSDs.
//   - When an OSD is down and its node unschedulable, the operator creates blocking budgets of maxUnavailable 0 for
//     all other failure domains, named rook-ceph-osd-<type>-<name>, and then deletes the default one. The other OSDs
//     of the node are under no budget from then on.
//   - An OSD is pinned to its node: its next pod is pending until the node is schedulable. The default budget comes
//     back when all OSDs are up.
type rook struct {
	osds  map[string]string // the nodes of the OSDs
	steps int
}

func osdSet(node string) labels.Set { return labels.Set{"app": osdBudget, zone: node} }

func (r *rook) createObjects(ctx context.Context, c *cluster) error {
	r.osds = map[string]string{}
	for i := range 2 * len(c.nodes) {
		name, node := fmt.Sprintf("rook-ceph-osd-%d", i), c.nodes[i/2]
		r.osds[name] = node
		set := osdSet(node)
		set["ceph-osd-id"] = fmt.Sprint(i)
		owner, err := c.client.AppsV1().ReplicaSets(c.ns).Create(ctx, newReplicaSet(name, set), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating ReplicaSet %q: %w", name, err)
		}
		controller := metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		if err := c.addPod(ctx, newPod(name, node, *controller, set)); err != nil {
			return err
		}
	}
	return c.addBudget(ctx, osdBudget, labels.Set{"app": osdBudget}, nil, countOf(1))
}

// newReplicaSet returns one whose pod is the fake's own: its scale is what the disruption controller reads.
func newReplicaSet(name string, set labels.Set) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: set},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: set},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
}

func (r *rook) reconcile(ctx context.Context, c *cluster, v view) error {
	down := false
	for name, node := range r.osds {
		pod, ok := v.podNamed(name)
		if node != c.node {
			continue
		}
		down = down || !ok || !pod.isReady() || pod.DeletionTimestamp != nil
		if !ok {
			if err := r.addPending(ctx, c, name); err != nil {
				return err
			}
		}
	}
	if !down || !v.cordoned || !slices.ContainsFunc(v.budgets, isDefaultBudget) {
		return nil
	}
	if r.steps++; r.steps < 20 { // the state of the placement groups is read for two seconds
		return nil
	}
	for _, node := range c.nodes[1:] {
		if err := c.addBudget(ctx, osdBudget+"-host-"+node, osdSet(node), nil, countOf(0)); err != nil {
			return err
		}
	}
	return c.deleteBudget(ctx, osdBudget)
}

func isDefaultBudget(b policyv1.PodDisruptionBudget) bool { return b.Name == osdBudget }

func (r *rook) addPending(ctx context.Context, c *cluster, name string) error {
	owner, err := c.client.AppsV1().ReplicaSets(c.ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	controller := metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return c.addPod(ctx, newPod(name, "", *controller, owner.Spec.Template.Labels))
}

func (r *rook) checkInvariant(v view) string {
	domains := map[string]bool{}
	for name, node := range r.osds {
		if pod, ok := v.podNamed(name); !ok || !pod.isReady() || pod.DeletionTimestamp != nil {
			domains[node] = true
		}
	}
	if len(domains) > 1 {
		return "OSDs of two failure domains were down"
	}
	return ""
}

func (r *rook) verifyEnd(v view) string {
	if len(v.budgets) != 2 || slices.ContainsFunc(v.budgets, isDefaultBudget) {
		return fmt.Sprintf("%d budgets protect the other failure domains, want 2", len(v.budgets))
	}
	return ""
}
