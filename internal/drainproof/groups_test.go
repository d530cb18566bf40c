// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// stateOf reads a node's mark: whether it is being drained, and whether it is drained.
func stateOf(mark string) (draining, drained bool) {
	var m struct {
		Holders []struct {
			Mode    drain.Mode
			Drained time.Time
		}
	}
	if err := json.Unmarshal([]byte(mark), &m); err != nil || len(m.Holders) == 0 {
		return false, false
	}
	drained = !m.Holders[0].Drained.IsZero()
	return !drained && m.Holders[0].Mode == drain.Drain, drained // one that waits for its turn is cordoned, no more
}

// TestSecondGroupStartsAfterTheLastNodeOfTheFirst holds up one of the two nodes of the first group. R-DR-20
// Fails when a group does not wait for the one before.
func TestSecondGroupStartsAfterTheLastNodeOfTheFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b, next := c.mustNode(t, "a", workRole).Name, c.mustNode(t, "b", workRole).Name, c.mustNode(t, "next", workRole).Name
	must(t, c.budget(t.Context(), "slow", "slow", 1))
	c.mustPod(t, "slow-a", "slow", a)
	c.mustPod(t, "slow-next", "slow", next, func(p *corev1.Pod) { p.Labels[unreadyLabel] = "yes" })
	c.mustPod(t, "plain-b", "plain", b)
	c.settled(t, 3)
	must(t, c.healthy(t.Context(), "slow", 1))
	user := c.name + "-drainer"
	s := setOf(user, drain.Drain)
	s.Groups = [][]string{{a, b}, {next}}
	run := start(t, mustConnect(t, c.asDrainer(t, user), nil), s)

	waits := func(s drain.SetStatus) bool {
		return len(s.Nodes) == 3 && s.Nodes[0].Phase == drain.Draining && s.Nodes[1].Phase == drain.Drained && s.Nodes[2].Reason == "WaitingForGroup"
	}
	run.reconciled(t, "the second group waits for one node", waits)
	c.looksAgain(t, run, a)
	if st := run.last(); !waits(st) {
		t.Errorf("got %s, want the second group to wait", inJSON(st))
	}
	must(t, c.makeReady(t.Context(), "slow-next")) // the drain may go on before anybody sees two that are healthy
	c.mustPod(t, "slow-more", "slow", b)           // takes the place of the first, so that the second may leave too
	if _, err := run.wait(t); err != nil {
		t.Fatal(err)
	}
	c.inTurn(t, user, []string{a, b}, next)
}

// inTurn reads from the audit log that nothing was written to a node before the others were drained.
func (c *cluster) inTurn(t *testing.T, user string, before []string, next string) {
	t.Helper()
	done := map[string]bool{}
	began := false
	for _, e := range audited(t, user) {
		if !e.isNodeWrite() {
			continue
		}
		patch, err := e.nodePatch()
		must(t, err)
		if _, drained := stateOf(patch.Metadata.Annotations[drain.MarkAnnotation]); drained {
			done[e.ObjectRef.Name] = true
		}
		if e.ObjectRef.Name == next && !began {
			began = true
			for _, n := range before {
				if !done[n] {
					t.Errorf("%s: comes before node %q is drained", e, n)
				}
			}
		}
	}
	if !began {
		t.Errorf("nothing was written to node %q", next)
	}
}

// TestFailedNodeStopsTheGroupAfterItOrIsSkipped deletes a Node of the first group in its drain. R-DR-16, R-DR-20
// Fails when a failure does not stop the set, when SkipFailed is not followed, and when the deletion of pods counts as a drain by evictions.
func TestFailedNodeStopsTheGroupAfterItOrIsSkipped(t *testing.T) {
	for name, want := range map[string][3]result{
		"stops": {{drain.Failed, drain.OutcomeFailed, drain.Superseded}, {drain.Drained, drain.OutcomeForced, ""}, {drain.Pending, "", "SetStopped"}},
		"is skipped": {
			{drain.Failed, drain.OutcomeFailed, drain.Superseded}, {drain.Drained, drain.OutcomeForced, ""}, {drain.Drained, drain.OutcomeDrained, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			f := c.newFleet(t)
			user := c.name + "-drainer"
			s := f.set(user)
			s.SkipFailed = name == "is skipped"
			clock := &leapClock{}
			run := start(t, mustConnect(t, c.asDrainer(t, user), func(o *drain.Options, cache *kube.Cache, client kubernetes.Interface) error {
				o.Now = clock.now
				return withEverything(o, cache, client)
			}), s)
			c.failsFirst(t, run, f, clock)
			st, err := run.wait(t)
			must(t, err)
			for i, n := range st.Nodes {
				if got := resultOf(n); got != want[i] {
					t.Errorf("node %q: got %+v, want %+v: %s", n.Node, got, want[i], n.Message)
				}
			}
			if began := marked(c.getNode(t, f.next)); began != s.SkipFailed {
				t.Errorf("node %q is marked: %t, want %t", f.next, began, s.SkipFailed)
			}
			if s.SkipFailed {
				return
			}
			if m := st.Nodes[2].Message; st.Reason != drain.Superseded || !strings.Contains(m, f.fails) {
				t.Errorf("the set stands still for %q, its last node says %q, want %q and the name of the node", st.Reason, m, drain.Superseded)
			}
			for _, e := range audited(t, user) {
				if e.ObjectRef.Name == f.next {
					t.Errorf("%s: want nothing written to the node after a failed one", e)
				}
			}
		})
	}
}

// A result is what others count.
type result struct {
	phase   drain.Phase
	outcome drain.Outcome
	reason  drain.Reason
}

func resultOf(n drain.Status) result { return result{n.Phase, n.Outcome, n.Reason} }

// A fleet is a node that is going to fail, one whose pod has to be deleted past its budget, and one for the next group.
type fleet struct{ fails, forced, next string }

func (c *cluster) newFleet(t *testing.T) fleet {
	t.Helper()
	f := fleet{c.mustNode(t, "fails", workRole).Name, c.mustNode(t, "forced", workRole).Name, c.mustNode(t, "next", workRole).Name}
	must(t, c.budget(t.Context(), "only", "only", 1))
	c.mustPod(t, "hooked", "plain", f.fails, hooked)
	c.mustPod(t, "only", "only", f.forced)
	c.mustPod(t, "plain", "plain", f.next)
	c.settled(t, 3)
	must(t, c.healthy(t.Context(), "only", 1))
	return f
}

// forceAfter is longer than a pod that may be evicted takes on any machine, and shorter than a responder may be silent.
const forceAfter = 5 * time.Minute

// set drains the fleet in two groups, and forces after a while what does not leave.
func (f fleet) set(user string) drain.Set {
	s := setOf(user, drain.Drain)
	s.Groups = [][]string{{f.fails, f.forced}, {f.next}}
	s.Request.Policy.Escalation = []drain.Escalation{{After: forceAfter, Step: drain.StepDelete}}
	return s
}

// failsFirst deletes the Node that has to fail, when the other one of its group is drained.
func (c *cluster) failsFirst(t *testing.T, run *running, f fleet, clock *leapClock) {
	t.Helper()
	run.reconciled(t, "both nodes of the group wait", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 3 && s.Nodes[0].Phase == drain.Draining && len(s.Nodes[1].Blockers) == 1 && s.Nodes[1].Blockers[0].Next == drain.StepDelete
	})
	clock.leap(forceAfter)
	must(t, c.touch(t.Context(), f.forced))
	run.reconciled(t, "one node waits for its responder, the other is drained", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 3 && s.Nodes[0].Phase == drain.Draining && s.Nodes[1].Phase == drain.Drained
	})
	// Another process begins another maintenance for the holder.
	r := f.set(c.name + "-drainer").Request
	r.Node, r.Maintenance, r.Mode = f.fails, "m2", drain.Cordon
	other := mustConnect(t, c.asDrainer(t, c.name+"-drainer"), nil)
	eventually(t, "the other maintenance has the node", func() error {
		st, _, err := other.ReconcileRequest(t.Context(), r)
		if err == nil && st.Phase != drain.Cordoned {
			err = fmt.Errorf("got %s, want %s", st.Phase, drain.Cordoned)
		}
		return err
	})
}

// TestNodePastItsDeadlineIsBlocked ends a drain that waits for a budget. R-DR-16
// Fails when a deadline is no end, and when it does not count as blocked.
func TestNodePastItsDeadlineIsBlocked(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	must(t, c.budget(t.Context(), "pair", "pair", 1))
	c.mustPod(t, "pair-0", "pair", a)
	c.mustPod(t, "pair-1", "pair", c.mustNode(t, "spare", spareRole).Name, func(p *corev1.Pod) { p.Labels[unreadyLabel] = "yes" })
	c.settled(t, 2)
	must(t, c.healthy(t.Context(), "pair", 1))
	user := c.name + "-drainer"
	clock := &leapClock{}
	s := setOf(user, drain.Drain, a)
	s.Request.Deadline = clock.now().Add(time.Hour)
	run := start(t, mustConnect(t, c.asDrainer(t, user), func(o *drain.Options, _ *kube.Cache, _ kubernetes.Interface) error {
		o.Now = clock.now
		return nil
	}), s)
	run.reconciled(t, "the drain waits", func(s drain.SetStatus) bool {
		return len(s.Nodes) == 1 && len(s.Nodes[0].Blockers) == 1 && s.Nodes[0].Blockers[0].Reason == drain.BudgetExhausted
	})
	if st := run.last(); st.Done || st.Nodes[0].Outcome != "" {
		t.Errorf("before its deadline got %s, want no result", inJSON(st))
	}
	clock.leap(2 * time.Hour)
	must(t, c.touch(t.Context(), a))
	st, err := run.wait(t)
	must(t, err)
	if got, want := resultOf(st.Nodes[0]), (result{drain.Draining, drain.OutcomeBlocked, "DeadlinePassed"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestNoMoreNodesAtOnceThanAllowed follows ten nodes, every change of which the server sends in its order. R-DR-04
// Fails when MaxNodes is not counted, when it is rounded up, and when its default is another.
func TestNoMoreNodesAtOnceThanAllowed(t *testing.T) {
	for name, want := range map[string]struct {
		of   intstr.IntOrString
		most int
	}{
		"one by default": {intstr.IntOrString{}, 1},
		"20%":            {intstr.FromString("20%"), 2},
		"29% is no more": {intstr.FromString("29%"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			var nodes []string
			for i := range 10 {
				nodes = append(nodes, c.mustNode(t, fmt.Sprint(i), workRole).Name)
				c.mustPod(t, fmt.Sprintf("pod-%d", i), "plain", nodes[i])
			}
			c.settled(t, 10)
			most := c.watchDrains(t)
			user := c.name + "-drainer"
			s := setOf(user, drain.Drain, nodes...)
			s.MaxNodes = want.of
			maintain(t, mustConnect(t, c.asDrainer(t, user), nil), s, drain.Drained)
			if got, drained := most(); got != want.most || drained != 10 {
				t.Errorf("%d nodes were draining at once and %d were drained, want %d and 10", got, drained, want.most)
			}
		})
	}
}

// watchDrains follows the nodes of the cluster. The returned function waits until all of them are drained, and gives the most that were
// draining at once, and how many were drained.
func (c *cluster) watchDrains(t *testing.T) func() (most, drained int) {
	t.Helper()
	list, err := c.api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: placeLabel + "=" + c.name})
	must(t, err)
	w, err := c.api.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{LabelSelector: placeLabel + "=" + c.name, ResourceVersion: list.ResourceVersion})
	must(t, err)
	t.Cleanup(w.Stop)
	type counts struct{ most, drained int }
	result := make(chan counts, 1)
	go func() {
		var n counts
		draining, drained := map[string]bool{}, map[string]bool{}
		for e := range w.ResultChan() {
			node, ok := e.Object.(*corev1.Node)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			is, was := stateOf(node.Annotations[drain.MarkAnnotation])
			draining[node.Name], drained[node.Name] = is, drained[node.Name] || was
			n = counts{max(n.most, trues(draining)), trues(drained)}
			if n.drained == len(list.Items) {
				break
			}
		}
		result <- n
	}()
	return func() (int, int) {
		select {
		case n := <-result:
			return n.most, n.drained
		case <-time.After(patience()):
			return 0, 0
		}
	}
}

func trues(m map[string]bool) int {
	n := 0
	for _, is := range m {
		if is {
			n++
		}
	}
	return n
}
