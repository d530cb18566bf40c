// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const postgresSource = "https://github.com/cloudnative-pg/cloudnative-pg/blob/main/pkg/specs/poddisruptionbudget.go"

const instanceRole = "cnpg.io/instanceRole"

// postgres is CloudNativePG with one cluster of three instances, whose primary is on the node.
//
//   - The budget "pg-primary" is minAvailable 1 of 1, the budget "pg" minAvailable 1 of the 2 replicas.
//   - When the node of the primary is unschedulable, the operator makes another instance the primary and relabels the
//     pods: https://github.com/cloudnative-pg/cloudnative-pg/blob/main/internal/controller/replicas.go. An eviction
//     has no effect on it.
//   - The old primary is then a replica, and leaves under the budget of the replicas.
type postgres struct {
	owner metav1.OwnerReference
	steps int
}

func roleSet(role string) labels.Set { return labels.Set{"cnpg.io/cluster": "pg", instanceRole: role} }

func (p *postgres) createObjects(ctx context.Context, c *cluster) error {
	p.owner = newOwner("postgresql.cnpg.io/v1", "Cluster", "pg")
	for i, node := range c.nodes {
		role := "replica"
		if node == c.node {
			role = "primary"
		}
		if err := c.addPod(ctx, newPod(fmt.Sprintf("pg-%d", i+1), node, p.owner, roleSet(role))); err != nil {
			return err
		}
	}
	if err := c.addBudget(ctx, "pg-primary", roleSet("primary"), countOf(1), nil); err != nil {
		return err
	}
	return c.addBudget(ctx, "pg", roleSet("replica"), countOf(1), nil)
}

func (p *postgres) reconcile(ctx context.Context, c *cluster, v view) error {
	old, ok := v.podNamed("pg-1")
	if !ok {
		return c.addPod(ctx, newPod("pg-1", c.nodes[1], p.owner, roleSet("replica")))
	}
	if !v.cordoned || old.Spec.NodeName != c.node || old.Labels[instanceRole] != "primary" {
		return nil
	}
	if p.steps++; p.steps < 20 { // a switch-over takes two seconds
		return nil
	}
	if err := c.patchPod(ctx, "pg-1", `{"metadata":{"labels":{"`+instanceRole+`":"replica"}}}`); err != nil {
		return err
	}
	return c.patchPod(ctx, "pg-2", `{"metadata":{"labels":{"`+instanceRole+`":"primary"}}}`)
}

func (p *postgres) checkInvariant(v view) string {
	for _, pod := range v.pods {
		if pod.DeletionTimestamp != nil && pod.Labels[instanceRole] == "primary" {
			return "the primary was deleted before the switch-over"
		}
	}
	if v.countReady(labels.Set{"cnpg.io/cluster": "pg"}) < 2 {
		return "more than one instance was down"
	}
	return ""
}

func (p *postgres) verifyEnd(v view) string {
	if n := v.countReady(roleSet("primary")); n != 1 {
		return fmt.Sprintf("%d instances are primaries", n)
	}
	return ""
}
