// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const strimziSource = "https://github.com/strimzi/drain-cleaner/blob/main/README.md"

// rollingUpdate asks the Cluster Operator to roll a pod.
const rollingUpdate = "strimzi.io/manual-rolling-update"

// strimzi is Strimzi's Drain Cleaner with the Cluster Operator, for three brokers.
//
//   - The webhook annotates the pod with strimzi.io/manual-rolling-update: "true" at each eviction.
//   - By default it refuses the eviction with code 500 and "The pod will be rolled by the Strimzi Cluster Operator":
//     https://github.com/strimzi/drain-cleaner/blob/main/src/main/java/io/strimzi/ValidatingWebhook.java.
//   - In the legacy mode, STRIMZI_DENY_EVICTION=false, it allows it, and a budget of maxUnavailable 0 refuses it. Since
//     a StrimziPodSet has no scale, the operator writes that as minAvailable 3 of 3.
//   - The operator deletes an annotated pod and creates it again, one at a time, in its next reconciliation.
type strimzi struct {
	denies bool
	set    labels.Set
	steps  int
}

func (s *strimzi) createObjects(ctx context.Context, c *cluster) error {
	s.set = labels.Set{
		"strimzi.io/cluster": "my-cluster", "strimzi.io/kind": "Kafka", "strimzi.io/name": "my-cluster-kafka",
	}
	owner := newOwner("core.strimzi.io/v1beta2", "StrimziPodSet", "my-cluster-kafka")
	for i, node := range c.nodes {
		if err := c.addPod(ctx, newPod(fmt.Sprintf("my-cluster-kafka-%d", i), node, owner, s.set)); err != nil {
			return err
		}
	}
	healthy := len(c.nodes)
	if s.denies {
		healthy--
	}
	if err := c.addBudget(ctx, "my-cluster-kafka", s.set, countOf(healthy), nil); err != nil {
		return err
	}
	return c.serveWebhook(ctx, &webhook{
		name: "strimzi-drain-cleaner.strimzi.io", policy: admissionregistrationv1.Ignore, timeout: 10,
		answer: func(ctx context.Context, pod string) (*metav1.Status, int) {
			if err := c.patchPod(ctx, pod, `{"metadata":{"annotations":{"`+rollingUpdate+`":"true"}}}`); err != nil {
				return nil, http.StatusInternalServerError
			}
			if !s.denies {
				return nil, 0
			}
			return &metav1.Status{
				Code: http.StatusInternalServerError, Message: "The pod will be rolled by the Strimzi Cluster Operator",
			}, 0
		},
	}, "my-cluster-kafka-0")
}

func (s *strimzi) reconcile(ctx context.Context, c *cluster, v view) error {
	for i := range c.nodes {
		name := fmt.Sprintf("my-cluster-kafka-%d", i)
		pod, ok := v.podNamed(name)
		if !ok {
			owner := v.pods[0].OwnerReferences[0]
			return c.addPod(ctx, newPod(name, s.freeNode(c, v, i), owner, s.set))
		}
		asked := pod.Annotations[rollingUpdate] == "true" && pod.DeletionTimestamp == nil
		if !asked || v.countReady(s.set) < len(c.nodes) {
			continue
		}
		if s.steps++; s.steps < 20 { // the next reconciliation is two seconds later
			return nil
		}
		return c.deletePod(ctx, name)
	}
	return nil
}

// freeNode is the node of a broker, or another one while that is cordoned.
func (s *strimzi) freeNode(c *cluster, v view, broker int) string {
	if c.nodes[broker] == c.node && v.cordoned {
		return c.nodes[1]
	}
	return c.nodes[broker]
}

func (s *strimzi) checkInvariant(v view) string {
	if v.countReady(s.set) < 2 {
		return "more than one broker was down"
	}
	return ""
}

func (s *strimzi) verifyEnd(v view) string {
	if _, ok := v.podNamed("my-cluster-kafka-1"); !ok {
		return "a broker on another node is gone"
	}
	return ""
}
