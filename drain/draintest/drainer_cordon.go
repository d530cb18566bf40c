// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/belayproject/belay/drain"
)

// cordonCases are about whose cordon it is.
func cordonCases() []drainerCase {
	return []drainerCase{
		{"a node that was cordoned before stays cordoned after the release", func(y *yard) {
			node := y.Node(y.t, "a")
			y.Node(y.t, "b")
			y.cordonByHand(node, true)
			r := y.request(node, drain.Drain)
			y.reconcile(r, phase(drain.Drained))
			y.release(r)
			if n := y.GetNode(y.t, node); !n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
				y.errorf("node %s: got unschedulable %v and mark %q, want it cordoned and unmarked", node, n.Spec.Unschedulable, n.Annotations[drain.MarkAnnotation])
			}
		}},
		{"several holders come and go in any order, and only the last uncordons what was schedulable", holdersInAnyOrder},
		{"somebody else's uncordon pauses the drain until somebody cordons again", func(y *yard) {
			node, r := y.halfway()
			y.cordonByHand(node, false)
			st := y.reconcile(r, phase(drain.Paused))
			if st.Reason != drain.UncordonedByOther {
				y.errorf("got %+v, want UncordonedByOther", st)
			}
			y.Plot().ClearLog()
			y.ChangeBudget(y.t, "web", func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable.IntVal = 2 })
			y.pass(r, 2*time.Second)
			if log := y.Plot().Log(Evict, Delete, PatchNode); len(log) > 0 {
				y.errorf("while uncordoned: got %v, want no write", log)
			}
			y.cordonByHand(node, true)
			y.reconcile(r, phase(drain.Drained))
			y.empty(node)
		}},
		{"somebody else's uncordon is taken back where the policy says so", func(y *yard) {
			node, r := y.halfway()
			r.Policy.Uncordoned = drain.Recordon
			y.cordonByHand(node, false)
			y.ChangeBudget(y.t, "web", func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable.IntVal = 2 })
			y.reconcile(r, phase(drain.Drained))
			if !y.GetNode(y.t, node).Spec.Unschedulable {
				y.errorf("node %s: got it schedulable, want it cordoned again", node)
			}
			y.release(r)
			y.clean(node)
		}},
	}
}

// cordonByHand cordons or uncordons a node as somebody else, and waits until the cache shows it.
func (y *yard) cordonByHand(node string, cordoned bool) {
	y.t.Helper()
	y.UpdateNode(y.t, node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	y.eventually("the node in the cache", func() error {
		if y.parts.Cache.Node(node).Spec.Unschedulable != cordoned {
			return errors.New("not yet")
		}
		return nil
	})
}

// halfway is a drain that its budget holds up for the time being.
func (y *yard) halfway() (string, drain.Request) {
	y.t.Helper()
	node := y.Node(y.t, "a")
	y.App(y.t, ReplicaSet, "web", 3)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "web", "0", web()))
	y.Node(y.t, "b")
	r := y.request(node, drain.Drain)
	y.reconcile(r, blocked(drain.BudgetNeverAllows))
	return node, r
}

// holdersInAnyOrder has three holders cordon and release in random orders. The seed is in the failure text.
func holdersInAnyOrder(y *yard) {
	node := y.Node(y.t, "a")
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 6 {
		before := round%2 == 1
		y.cordonByHand(node, before)
		holding := 0
		for _, step := range orderOf(random, 3) {
			mode, want := drain.Cordon, drain.Cordoned
			if step.out {
				mode, want = drain.Release, drain.Released
			}
			r := drain.Request{Node: node, Holder: fmt.Sprintf("suite/%d", step.holder), Maintenance: fmt.Sprintf("m%d", round), Mode: mode}
			y.reconcile(r, phase(want))
			if step.out {
				holding--
			} else {
				holding++
			}
			if got := y.GetNode(y.t, node).Spec.Unschedulable; got != (before || holding > 0) {
				y.errorf("seed %d, round %d: got unschedulable %v with %d holders, cordoned before: %v", seed, round, got, holding, before)
			}
		}
		if mark := y.GetNode(y.t, node).Annotations[drain.MarkAnnotation]; mark != "" {
			y.errorf("seed %d, round %d: got the mark %s, want none", seed, round, mark)
		}
	}
}

// A turn is a holder's coming or going.
type turn struct {
	holder int
	out    bool
}

// orderOf is a random order in which each of n holders comes before it goes.
func orderOf(random *rand.Rand, n int) []turn {
	var turns []turn
	in := make([]bool, n)
	for len(turns) < 2*n {
		h := random.IntN(n)
		gone := 0
		for _, t := range turns {
			if t.holder == h && t.out {
				gone++
			}
		}
		if gone > 0 {
			continue
		}
		turns = append(turns, turn{h, in[h]})
		in[h] = true
	}
	return turns
}
