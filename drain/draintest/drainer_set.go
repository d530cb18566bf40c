// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/backoff"
)

// setCases are about several nodes at once.
func setCases() []drainerCase {
	return []drainerCase{
		{"R-DR-02: a budget is never broken while all nodes of its app are drained, without one DELETE", budgetKept},
		{"R-DR-04: by default one node is drained at a time", func(y *yard) { atOnce(y, intstr.IntOrString{}, 1) }},
		{"R-DR-04: 20 % of ten nodes are two at a time", func(y *yard) { atOnce(y, intstr.FromString("20%"), 2) }},
		{"R-DR-20: a group starts when the one before it is drained", inGroups},
		{"R-DR-17: after a cancel no eviction starts, nodes are as before, and who was evicted is told", cancelled},
	}
}

// set is a set of nodes of the usual holder, in one group.
func (y *yard) set(nodes ...string) drain.Set {
	return drain.Set{Request: y.request("", drain.Drain), Groups: [][]string{nodes}}
}

// run runs a set to its end.
func (y *yard) run(s drain.Set, report func(drain.SetStatus)) drain.SetStatus {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), y.Patience())
	defer cancel()
	st, err := y.drainer.Run(ctx, s, report)
	if err != nil {
		y.fatalf("Run: got %v with %+v, want the set done", err, st)
	}
	return st
}

func (y *yard) nodes(n int, prefix string) []string {
	y.t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = y.Node(y.t, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

func budgetKept(y *yard) {
	drained := y.nodes(3, "old")
	y.App(y.t, ReplicaSet, "web", 3)
	y.Budget(y.t, MinAvailable(y.Namespace(), "web", "2", web()))
	all := append(slices.Clone(drained), y.nodes(2, "new")...)
	y.always(func() {
		healthy := 0
		for _, node := range all {
			for _, pod := range y.parts.Cache.Pods(node) {
				if pod.Labels["app"] == "web" && pod.DeletionTimestamp == nil && isReady(pod) {
					healthy++
				}
			}
		}
		if healthy < 2 {
			y.errorf("healthy pods: got %d, want never below the budget's 2", healthy)
		}
	})
	s := y.set(drained...)
	s.MaxNodes = intstr.FromString("100%")
	st := y.run(s, nil)
	for _, node := range st.Nodes {
		if node.Outcome != drain.OutcomeDrained {
			y.errorf("node %s: got %+v, want it drained", node.Node, node)
		}
		y.empty(node.Node)
	}
	y.onlyPlanned(drained...)
}

func underWay(st drain.Status) bool {
	return slices.Contains([]drain.Phase{drain.Cordoned, drain.Draining, drain.Paused, drain.Settling}, st.Phase)
}

func atOnce(y *yard, limit intstr.IntOrString, want int) {
	drained := y.nodes(10, "old")
	y.App(y.t, ReplicaSet, "web", 10)
	y.nodes(2, "new")
	s := y.set(drained...)
	s.MaxNodes = limit
	s.Request.Policy.Settle = ptr.To(100 * time.Millisecond)
	most := 0
	y.run(s, func(st drain.SetStatus) {
		n := 0
		for _, node := range st.Nodes {
			if underWay(node) {
				n++
			}
		}
		most = max(most, n)
	})
	if most != want {
		y.errorf("nodes draining at once: got at most %d, want %d", most, want)
	}
	y.onlyPlanned(drained...)
}

func inGroups(y *yard) {
	first, second := y.nodes(2, "first"), y.nodes(2, "second")
	y.App(y.t, ReplicaSet, "web", 4)
	y.nodes(1, "new")
	s := y.set(first...)
	s.Groups = append(s.Groups, second)
	s.MaxNodes = intstr.FromInt(4)
	s.Request.Policy.Settle = ptr.To(100 * time.Millisecond)
	y.run(s, func(st drain.SetStatus) {
		done := true
		for i, node := range st.Nodes {
			if i < len(first) {
				done = done && node.Phase == drain.Drained
			} else if !done && underWay(node) {
				y.errorf("node %s: got phase %s before the first group is drained", node.Node, node.Phase)
			}
		}
	})
	y.onlyPlanned(append(first, second...)...)
}

func cancelled(y *yard) {
	drained := y.nodes(2, "old")
	y.App(y.t, ReplicaSet, "web", 8)
	y.Budget(y.t, MaxUnavailable(y.Namespace(), "web", "1", web()))
	y.nodes(1, "new")
	y.UpdateNode(y.t, drained[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	y.eventually("the cordon in the cache", func() error {
		if n := y.parts.Cache.Node(drained[1]); !n.Spec.Unschedulable {
			return errors.New("not yet")
		}
		return nil
	})
	s := y.set(drained...)
	s.MaxNodes = intstr.FromInt(2)
	ctx, cancel := context.WithCancel(y.t.Context())
	defer cancel()
	st, err := y.drainer.Run(ctx, s, func(st drain.SetStatus) {
		evicted := 0
		for _, node := range st.Nodes {
			evicted += node.Counts.Evicted
		}
		if evicted >= 2 {
			cancel()
		}
	})
	returned := time.Now()
	if !errors.Is(err, context.Canceled) {
		y.fatalf("Run: got %v with %+v, want the context's error", err, st)
	}
	backoff.Sleep(y.t.Context(), min(y.Patience()/10, time.Minute))
	told, accepted := 0, 0
	for _, node := range st.Nodes {
		told += len(node.Evicted)
	}
	for _, call := range y.Plot().Log(Evict) {
		if call.Started.After(returned) {
			y.errorf("got %v, started %v after Run had returned", call, call.Started.Sub(returned))
		}
		if call.Wrote {
			accepted++
		}
	}
	if told != accepted || accepted == 0 {
		y.errorf("evicted pods in the status: got %d, want the %d that the server has accepted", told, accepted)
	}
	y.clean(drained[0])
	if n := y.GetNode(y.t, drained[1]); !n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
		y.errorf("node %s: got unschedulable %v and mark %q, want the cordon from before, without a mark",
			n.Name, n.Spec.Unschedulable, n.Annotations[drain.MarkAnnotation])
	}
}
