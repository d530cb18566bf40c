// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// nodeCases are about nodes that come and go.
func nodeCases() []drainerCase {
	return []drainerCase{
		{"R-DR-09: nothing is left on the node after the release", func(y *yard) {
			node := y.Node(y.t, "a")
			y.App(y.t, ReplicaSet, "web", 2)
			y.Node(y.t, "b")
			before := y.GetNode(y.t, node)
			r := y.request(node, drain.Drain)
			y.reconcile(r, phase(drain.Drained))
			y.release(r)
			y.clean(node)
			y.eventually("the node as it was", func() error {
				after := y.GetNode(y.t, node)
				if fmt.Sprint(after.Annotations, after.Labels, after.Spec.Taints) != fmt.Sprint(before.Annotations, before.Labels, before.Spec.Taints) {
					return fmt.Errorf("got annotations %v, labels %v, taints %v; want %v, %v, %v",
						after.Annotations, after.Labels, after.Spec.Taints, before.Annotations, before.Labels, before.Spec.Taints)
				}
				return nil
			})
		}},
		{"a node that does not exist fails, without a write", func(y *yard) {
			st := y.reconcile(y.request("no-such-node", drain.Drain), phase(drain.Failed))
			if st.Reason != drain.NodeNotFound || st.Outcome != drain.OutcomeFailed {
				y.errorf("got %+v, want NodeNotFound", st)
			}
			if log := y.Plot().Log(); len(log) != 1 || log[0].Verb != GetNode {
				y.errorf("got %v, want the server asked once whether there is such a node, and nothing else", log)
			}
		}},
		{"R-DR-09: a node that is deleted in the middle of its drain fails, and nothing more is done", deletedMidway},
		{"a node that was replaced in the middle of its drain is not the one that is meant", replacedMidway},
		{"a node of another UID than asked for is left alone", func(y *yard) {
			node := y.Node(y.t, "a")
			y.App(y.t, ReplicaSet, "web", 1)
			r := y.request(node, drain.Drain)
			r.NodeUID = otherPodUID
			st := y.reconcile(r, phase(drain.Failed))
			if st.Reason != drain.NodeReplaced {
				y.errorf("got %+v, want NodeReplaced", st)
			}
			if log := y.Plot().Log(); len(log) > 0 {
				y.errorf("got %v, want no request", log)
			}
		}},
	}
}

// midway brings a drain to where one pod is left that cannot leave.
func (y *yard) midway(node string, r drain.Request) {
	y.t.Helper()
	y.App(y.t, ReplicaSet, "rigid", 1)
	y.App(y.t, ReplicaSet, "web", 2)
	y.Budget(y.t, MinAvailable(y.Namespace(), "rigid", "1", map[string]string{"app": "rigid"}))
	y.Node(y.t, "refuge")
	y.reconcile(r, func(st drain.Status) bool { return st.Counts.Remaining == 1 && blocked(drain.BudgetNeverAllows)(st) })
	y.cordonFirst(node)
}

func deletedMidway(y *yard) {
	node := y.Node(y.t, "a")
	r := y.request(node, drain.Drain)
	y.midway(node, r)
	y.DeleteNode(y.t, node)
	st := y.reconcile(r, phase(drain.Failed))
	if st.Reason != drain.NodeNotFound || st.Outcome != drain.OutcomeFailed {
		y.errorf("got %+v, want NodeNotFound", st)
	}
	y.Plot().ClearLog()
	y.release(r)
	if log := y.Plot().Log(); len(log) > 0 {
		y.errorf("release of a node that is gone: got %v, want no request", log)
	}
}

func replacedMidway(y *yard) {
	node := y.Node(y.t, "a")
	r := y.request(node, drain.Drain)
	y.midway(node, r)
	old := y.GetNode(y.t, node).UID
	y.DeleteNode(y.t, node)
	y.Node(y.t, "a")
	y.eventually("the new node in the cache", func() error {
		if n := y.parts.Cache.Node(node); n == nil || n.UID == old {
			return fmt.Errorf("got %v, want another UID than %s", uidOfNode(n), old)
		}
		return nil
	})
	y.Plot().ClearLog()
	r.NodeUID = old
	st := y.reconcile(r, phase(drain.Failed))
	if st.Reason != drain.NodeReplaced {
		y.errorf("got %+v, want NodeReplaced", st)
	}
	if log := y.Plot().Log(); len(log) > 0 {
		y.errorf("got %v, want no request about the new node", log)
	}
	y.clean(node)
}

func uidOfNode(n *corev1.Node) types.UID {
	if n == nil {
		return ""
	}
	return n.UID
}
