// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// toleratesAll is what a workload has that is to run on any node.
func toleratesAll(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
}

// TestTolerantPodsAreNotLeftUnnamed drains a node with pods that tolerate every taint: they are evicted as by kubectl.
// Where the policy leaves them, they are counted by that reason, and run on. R-DR-02
func TestTolerantPodsAreNotLeftUnnamed(t *testing.T) {
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprintf("skip %t", skip), func(t *testing.T) {
			c := newCluster(t)
			node := c.mustNode(t, "a", workRole).Name
			for i := range 3 {
				c.mustPod(t, fmt.Sprint("agent-", i), "agent", node, toleratesAll)
			}
			c.mustPod(t, "plain", "plain", node)
			c.settled(t, 4)
			user := c.name + "-drainer"
			set, left := setOf(user, drain.Drain, node), 0
			if skip {
				set.Request.Policy.Tolerating, left = "Skip", 3
			}
			st, err := start(t, mustConnect(t, c.asDrainer(t, user), nil), set).wait(t)
			must(t, err)
			n := st.Nodes[0]
			if n.Phase != drain.Drained || n.Counts.Tolerating != left || len(n.Evicted) != 4-left {
				t.Errorf("got %s, want it drained with %d pods left and named", inJSON(n), left)
			}
			eventually(t, "the pods that were left run on, and no others", func() error {
				pods, err := c.podsOn(t.Context(), node)
				if err == nil && len(pods) != left {
					err = fmt.Errorf("got %d pods on the node, want %d", len(pods), left)
				}
				return err
			})
		})
	}
}

// TestSetOnTheServerMovesEachPodOnce drains six nodes in one set. The replacements may go to any of them, and go to the
// two that are not in it: as many evictions as there were pods. R-DR-20
func TestSetOnTheServerMovesEachPodOnce(t *testing.T) {
	c := newCluster(t)
	const pods = 30
	var nodes []string
	for i := range 6 {
		nodes = append(nodes, c.mustNode(t, fmt.Sprint("n", i), spareRole).Name)
	}
	must(t, c.replicas(t.Context(), "web", pods)) // spread over the six
	c.settled(t, pods)
	for i := range 2 {
		c.mustNode(t, fmt.Sprint("spare", i), spareRole)
	}
	user := c.name + "-drainer"
	set := setOf(user, drain.Drain, nodes...)
	set.MaxNodes = intstr.FromInt32(2)
	st, err := start(t, mustConnect(t, c.asDrainer(t, user), nil), set).wait(t)
	must(t, err)
	for _, n := range st.Nodes {
		if n.Phase != drain.Drained {
			t.Errorf("got %s, want it drained", inJSON(n))
		}
	}
	all, accepted := evictions(t, audited(t, user))
	if len(accepted) != pods || len(all) != pods {
		t.Errorf("got %d evictions, %d accepted, want one for each of %d pods", len(all), len(accepted), pods)
	}
}

// TestBlockedNodeAndLostNodeHoldUpNoOther drains three nodes one after another: one has a pod whose budget never
// allows, one is deleted while it waits. The third is drained meanwhile. R-DR-20
func TestBlockedNodeAndLostNodeHoldUpNoOther(t *testing.T) {
	c := newCluster(t)
	stuck, lost := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole).Name
	last := c.mustNode(t, "c", workRole).Name
	must(t, c.budget(t.Context(), "only", "only", 1))
	c.mustPod(t, "only", "only", stuck)
	c.mustPod(t, "hooked", "hooked", lost, hooked)
	c.mustPod(t, "plain", "plain", last)
	c.settled(t, 3)
	must(t, c.healthy(t.Context(), "only", 1))
	user := c.name + "-drainer"
	set := setOf(user, drain.Drain, stuck, lost, last)
	set.MaxNodes = intstr.FromInt32(1)
	run := start(t, mustConnect(t, c.asDrainer(t, user), nil), set)
	run.reconciled(t, "the second begins beside the blocked one, and the third is closed", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 3 && s.Nodes[1].Phase == drain.Draining && c.getNode(t, last).Spec.Unschedulable
	})
	must(t, c.api.CoreV1().Nodes().Delete(t.Context(), lost, metav1.DeleteOptions{}))
	run.reconciled(t, "the lost node is done, the third drained, the first named", func(s drain.SetStatus) bool {
		first := s.Nodes[0]
		return s.Nodes[1].Phase == drain.Drained && s.Nodes[2].Phase == drain.Drained && s.Reason == "" &&
			first.Reason == drain.BudgetNeverAllows && len(first.Blockers) == 1 && first.Blockers[0].Name == "only"
	})
}

// TestWrongNameStopsASetOnTheServer gives a set a name that no Node has. The set stops before it evicts a pod, and
// leaves no node cordoned. R-DR-20
func TestWrongNameStopsASetOnTheServer(t *testing.T) {
	c := newCluster(t)
	a, b := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole).Name
	c.mustPod(t, "one", "one", a)
	c.mustPod(t, "two", "two", b)
	c.settled(t, 2)
	user := c.name + "-drainer"
	set := setOf(user, drain.Drain, a, b, c.name+"-typo")
	set.MaxNodes = intstr.FromInt32(1)
	st, err := start(t, mustConnect(t, c.asDrainer(t, user), nil), set).wait(t)
	must(t, err)
	if st.Reason != drain.NodeNotFound || !strings.Contains(st.Message, c.name+"-typo") {
		t.Errorf("got %s, want it stopped for the name", inJSON(st))
	}
	if all, _ := evictions(t, audited(t, user)); len(all) != 0 {
		t.Errorf("got %d evictions, want none: %s", len(all), describe(all))
	}
	for _, n := range []string{a, b} {
		if node := c.getNode(t, n); node.Spec.Unschedulable || marked(node) {
			t.Errorf("node %s: got it cordoned or marked, want it as it was", n)
		}
	}
}

// TestRequestsThatMeanNothing asks for a maintenance without a name, and for a Node that does not exist: each is an
// error that says so, and the Node stays as it is.
func TestRequestsThatMeanNothing(t *testing.T) {
	c := newCluster(t)
	node := c.mustNode(t, "a", workRole).Name
	user := c.name + "-drainer"
	wanted := drain.Request{Holder: user, Maintenance: "m1", Mode: drain.Drain}
	d := mustConnect(t, c.asDrainer(t, user), func(o *drain.Options, _ *kube.Cache, _ kubernetes.Interface) error {
		o.Requests = func(context.Context, string) (drain.Request, bool, error) { return wanted, true, nil }
		return nil
	})
	wanted.Maintenance = ""
	if _, err := d.Reconcile(t.Context(), node); err == nil || !strings.Contains(err.Error(), "maintenance") {
		t.Errorf("without a maintenance: got %v, want an error that names the field", err)
	}
	if n := c.getNode(t, node); marked(n) || n.Spec.Unschedulable {
		t.Errorf("got annotations %v, unschedulable %t, want the node left alone", n.Annotations, n.Spec.Unschedulable)
	}
	wanted.Maintenance = "m1"
	var missing *drain.NodeNotFoundError
	_, err := d.Reconcile(t.Context(), c.name+"-typo")
	if !errors.As(err, &missing) || missing.Node != c.name+"-typo" || !errors.Is(err, drain.ErrNodeNotFound) {
		t.Errorf("a Node that does not exist: got %v, want an error that names it", err)
	}
}

// TestBudgetThatCannotBeComputedSaysWhy has a budget over pods of a resource without scale. The disruption controller
// says so in the budget's own condition, and the drain repeats it. R-DR-04
func TestBudgetThatCannotBeComputedSaysWhy(t *testing.T) {
	c := newCluster(t)
	node := c.mustNode(t, "a", workRole).Name
	owner, err := c.api.CoreV1().ConfigMaps(c.namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "odd"}}, metav1.CreateOptions{})
	must(t, err)
	c.mustPod(t, "odd", "odd", node, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}
	})
	_, err = c.api.PolicyV1().PodDisruptionBudgets(c.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "odd"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "odd"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	c.settled(t, 1)
	eventually(t, "the controller says that it can't compute the budget", func() error {
		b, err := c.api.PolicyV1().PodDisruptionBudgets(c.namespace).Get(t.Context(), "odd", metav1.GetOptions{})
		if err == nil && !hasSyncFailed(b) {
			err = fmt.Errorf("got the conditions %v, want %s", b.Status.Conditions, policyv1.SyncFailedReason)
		}
		return err
	})
	user := c.name + "-drainer"
	run := start(t, mustConnect(t, c.asDrainer(t, user), nil), setOf(user, drain.Drain, node))
	run.reconciled(t, "the cause is named", func(s drain.SetStatus) bool {
		if len(s.Nodes) != 1 || len(s.Nodes[0].Blockers) != 1 {
			return false
		}
		b := s.Nodes[0].Blockers[0]
		return strings.Contains(b.Message, "scale") && slices.Equal(b.Budgets, []string{"odd"})
	})
}

// hasSyncFailed reports whether the disruption controller has given up on the budget.
func hasSyncFailed(b *policyv1.PodDisruptionBudget) bool {
	return slices.ContainsFunc(b.Status.Conditions, func(m metav1.Condition) bool {
		return m.Reason == policyv1.SyncFailedReason
	})
}
