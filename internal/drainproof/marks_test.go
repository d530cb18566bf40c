// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// TestMaintenanceCostsFourNodeWrites counts the writes of a maintenance with a watch at its end, for few pods and for many. R-DR-08
func TestMaintenanceCostsFourNodeWrites(t *testing.T) {
	for _, pods := range []int{5, 60} {
		t.Run(fmt.Sprintf("%d pods", pods), func(t *testing.T) {
			c := newCluster(t)
			a := c.mustNode(t, "a", workRole).Name
			for i := range pods {
				c.mustPod(t, fmt.Sprintf("pod-%d", i), "plain", a)
			}
			c.settled(t, pods)
			user := c.name + "-drainer"
			d := mustConnect(t, c.asDrainer(t, user), nil)
			maintain(t, d, setOf(user, drain.Drain, a), drain.Drained)
			back := setOf(user, drain.Release, a)
			back.Request.Policy.Soak = time.Second
			run := start(t, d, back)
			run.reconciled(t, "the node is watched after its return", func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && s.Nodes[0].Phase == drain.Soak })
			st, err := run.wait(t)
			must(t, err)
			if st.Nodes[0].Phase != drain.Released {
				t.Fatalf("got %s, want phase %q", inJSON(st), drain.Released)
			}
			var writes []auditEvent
			// The node lifecycle controller writes its taint meanwhile. A patch that comes after that is refused, and is no write: the server has not
			// carried it out.
			events := slices.DeleteFunc(audited(t, user), func(e auditEvent) bool {
				return e.isNodeWrite() && e.ResponseStatus.Code == http.StatusConflict
			})
			for _, e := range events {
				if e.isNodeWrite() {
					writes = append(writes, e)
				}
			}
			if len(writes) != 4 || len(events) != 4+pods {
				t.Errorf("a maintenance of %d pods took %d writes of the node and %d in all, want 4 and %d:%s", pods, len(writes), len(events), 4+pods, describe(writes))
			}
			if node := c.getNode(t, a); marked(node) || node.Spec.Unschedulable {
				t.Errorf("node %q is left with annotations %q and unschedulable %t", a, node.Annotations, node.Spec.Unschedulable)
			}
		})
	}
}

// withEverything switches on all that leaves something behind: conditions, and hooks, which are annotations of pods.
func withEverything(o *drain.Options, cache *kube.Cache, client kubernetes.Interface) error {
	responder, err := kube.NewAnnotationResponder(client, cache.View(), kube.Options{})
	o.NodeConditions, o.Responders = true, map[string]drain.Responder{"migrate": responder}
	return err
}

// hooked makes a pod wait for a responder that never answers.
func hooked(p *corev1.Pod) { p.Annotations = map[string]string{drain.HookAnnotation: "migrate"} }

// TestNothingStaysWhenTheWorkIsOver compares what is there after a cancelled maintenance, and after a complete one, with what was there
// before. R-DR-09
func TestNothingStaysWhenTheWorkIsOver(t *testing.T) {
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	c.mustPod(t, "hooked", "hooked", a, hooked)
	c.settled(t, 1)
	user := c.name + "-drainer"
	d := mustConnect(t, c.asDrainer(t, user), withEverything)
	before := c.traces(t, a)

	run := start(t, d, setOf(user, drain.Drain, a))
	run.reconciled(t, "the responder is asked", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 1 && len(s.Nodes[0].Blockers) == 1 && s.Nodes[0].Blockers[0].Reason == "WaitingForHook"
	})
	c.during(t, a)
	run.cancel()
	if _, err := run.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	c.unchanged(t, a, before)

	must(t, c.api.CoreV1().Pods(c.namespace).Delete(t.Context(), "hooked", metav1.DeleteOptions{}))
	maintain(t, d, setOf(user, drain.Drain, a), drain.Drained)
	maintain(t, d, setOf(user, drain.Release, a), drain.Released)
	delete(before, "pod hooked")
	c.unchanged(t, a, before)
}

// TestNothingStaysWhenTheNodeIsDeleted deletes a Node in the middle of its drain. R-DR-09
func TestNothingStaysWhenTheNodeIsDeleted(t *testing.T) {
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	c.mustPod(t, "hooked", "hooked", a, hooked)
	c.settled(t, 1)
	user := c.name + "-drainer"
	before := c.traces(t, a)
	run := start(t, mustConnect(t, c.asDrainer(t, user), withEverything), setOf(user, drain.Drain, a))
	run.reconciled(t, "the responder is asked", func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && len(s.Nodes[0].Blockers) == 1 })
	must(t, c.api.CoreV1().Nodes().Delete(t.Context(), a, metav1.DeleteOptions{}))
	st, err := run.wait(t)
	must(t, err)
	if n := st.Nodes[0]; n.Phase != drain.Drained || n.Outcome != drain.OutcomeDrained || n.Reason != drain.NodeNotFound {
		t.Errorf("got phase %q, outcome %q, reason %q, want %q, %q, %q: nothing is left to drain",
			n.Phase, n.Outcome, n.Reason, drain.Drained, drain.OutcomeDrained, drain.NodeNotFound)
	}
	maps.DeleteFunc(before, func(k, _ string) bool { return strings.HasPrefix(k, "node") })
	c.unchanged(t, a, before)
}

// traces are all places in which a drain leaves something.
func (c *cluster) traces(t *testing.T, node string) map[string]string {
	t.Helper()
	out := map[string]string{}
	n, err := c.api.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	switch {
	case err == nil:
		var conditions []string
		for _, cond := range n.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s", cond.Type, cond.Status))
		}
		slices.Sort(conditions)
		out["node"] = inJSON([]any{n.Annotations, n.Labels, n.Spec, conditions, n.Finalizers})
	case !apierrors.IsNotFound(err):
		t.Fatal(err)
	}
	pods, err := c.api.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, p := range pods.Items {
		out["pod "+p.Name] = inJSON([]any{p.Annotations, p.Labels, p.Finalizers})
	}
	leases, err := c.api.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, l := range leases.Items {
		if strings.Contains(inJSON(l), c.name) || strings.Contains(inJSON(l.ManagedFields), "belay-drain") {
			out["lease "+l.Namespace+"/"+l.Name] = inJSON(l.Spec)
		}
	}
	return out
}

// during makes sure that there is something to be removed.
func (c *cluster) during(t *testing.T, node string) {
	t.Helper()
	n := c.getNode(t, node)
	condition := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "DrainInProgress" })
	pod, err := c.api.CoreV1().Pods(c.namespace).Get(t.Context(), "hooked", metav1.GetOptions{})
	must(t, err)
	if !marked(n) || !n.Spec.Unschedulable || !condition || pod.Annotations[kube.RequestAnnotation] == "" {
		t.Errorf("during the drain, the node has annotations %q, unschedulable %t, conditions %v, and the pod has annotations %q, want a mark, the cordon, %s and a request",
			n.Annotations, n.Spec.Unschedulable, n.Status.Conditions, pod.Annotations, "DrainInProgress")
	}
}

// unchanged waits until everything is as it was: the taint of the cordon is the controller manager's to remove. Of a node that is
// gone, so are the pods soon.
func (c *cluster) unchanged(t *testing.T, node string, before map[string]string) {
	t.Helper()
	eventually(t, "nothing of ours stays", func() error {
		for k, v := range c.traces(t, node) {
			if v != before[k] {
				return fmt.Errorf("%s is %s, want %s", k, v, before[k])
			}
		}
		return nil
	})
}

// TestNothingIsEvictedAfterACancel ends a drain in its middle, and then tempts it. R-DR-17
func TestNothingIsEvictedAfterACancel(t *testing.T) {
	c := newCluster(t)
	a, b := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole, cordoned).Name
	c.mustNode(t, "spare", spareRole)
	must(t, c.app(t.Context(), "web", 7, a, a, a, a, b, b, b, b))
	user := c.name + "-drainer"
	run := start(t, mustConnect(t, c.asDrainer(t, user), nil), setOf(user, drain.Drain, a, b))
	run.reconciled(t, "some pods have left", func(s drain.SetStatus) bool { return len(s.Nodes) == 2 && evicted(s) >= 2 })
	run.cancel()
	st, err := run.wait(t)
	returned := time.Now()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	must(t, c.healthy(t.Context(), "web", 8)) // from now on the budget lets one go
	<-time.After(2 * time.Second)             // for what must not come there is nothing to poll

	all, accepted := evictions(t, audited(t, user))
	for _, e := range all {
		if e.RequestReceivedTimestamp.After(returned) {
			t.Errorf("%s: is after Run has returned, at %s", e, returned)
		}
	}
	listed := 0
	for _, n := range st.Nodes {
		for _, p := range n.Evicted {
			listed++
			if accepted[p.UID] == 0 {
				t.Errorf("pod %s (%s) is listed, and the server has accepted no eviction of it", p, p.UID)
			}
		}
	}
	if listed != len(accepted) || listed == 8 {
		t.Errorf("%d pods are listed as evicted, want %d, and not all", listed, len(accepted))
	}
	for name, prior := range map[string]bool{a: false, b: true} {
		if node := c.getNode(t, name); marked(node) || node.Spec.Unschedulable != prior {
			t.Errorf("node %q is left with annotations %q and unschedulable %t, want no mark and %t", name, node.Annotations, node.Spec.Unschedulable, prior)
		}
	}
}

func evicted(s drain.SetStatus) int {
	n := 0
	for _, node := range s.Nodes {
		n += node.Counts.Evicted
	}
	return n
}
