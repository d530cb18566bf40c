// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const longhornSource = "https://github.com/longhorn/longhorn-manager/" +
	"blob/master/controller/instance_manager_controller.go"

// The pods of the node.
const (
	managerPod = "instance-manager-a"
	volumePod  = "database-0"
)

// longhorn has an instance manager on the node, which serves the volume of a database there.
//
//   - The budget of the instance manager is minAvailable 1 of 1 and has the name of the pod.
//   - The manager deletes the budget when the node is unschedulable, no volume is attached there, and each volume has
//     a healthy replica elsewhere (node drain policy block-if-contains-last-replica, the default):
//     https://longhorn.io/docs/latest/references/settings/#node-drain-policy. An eviction has no effect on it.
//   - The instance manager is created again when the node is schedulable.
type longhorn struct {
	steps int
}

func (l *longhorn) createObjects(ctx context.Context, c *cluster) error {
	owner := newOwner("longhorn.io/v1beta2", "InstanceManager", managerPod)
	set := labels.Set{"longhorn.io/component": "instance-manager", "longhorn.io/node": c.node}
	if err := c.addPod(ctx, newPod(managerPod, c.node, owner, set)); err != nil {
		return err
	}
	owner = newOwner("apps/v1", "StatefulSet", "database")
	if err := c.addPod(ctx, newPod(volumePod, c.node, owner, labels.Set{"app": "database"})); err != nil {
		return err
	}
	return c.addBudget(ctx, managerPod, set, countOf(1), nil)
}

func (l *longhorn) reconcile(ctx context.Context, c *cluster, v view) error {
	database, ok := v.podNamed(volumePod)
	if !ok {
		owner := newOwner("apps/v1", "StatefulSet", "database")
		return c.addPod(ctx, newPod(volumePod, c.nodes[1], owner, labels.Set{"app": "database"}))
	}
	if !v.cordoned || database.Spec.NodeName == c.node || len(v.budgets) == 0 {
		return nil
	}
	if l.steps++; l.steps < 20 { // the volume is detached two seconds later
		return nil
	}
	err := c.client.PolicyV1().PodDisruptionBudgets(c.ns).Delete(ctx, managerPod, metav1.DeleteOptions{})
	return err
}

func (l *longhorn) checkInvariant(v view) string {
	manager, ok := v.podNamed(managerPod)
	if len(v.budgets) > 0 && (!ok || manager.DeletionTimestamp != nil) {
		return "the instance manager was deleted while its budget protected it"
	}
	return ""
}

func (l *longhorn) verifyEnd(v view) string {
	if database, ok := v.podNamed(volumePod); !ok || !database.isReady() {
		return "the database does not run on another node"
	}
	return ""
}
