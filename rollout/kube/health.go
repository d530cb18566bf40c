// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

// HealthOptions say what a [Health] looks at.
type HealthOptions struct {
	// Bad are further types of conditions of Nodes that are bad when they are True, such as those of a node problem detector. Ready, the pressures
	// and NetworkUnavailable are always looked at.
	Bad []corev1.NodeConditionType
	// Ignore says of which pods nobody waits for the readiness. It is called for each pod at each look, and must not change it. Nil means none.
	Ignore func(*corev1.Pod) bool
}

// Health says whether a node and the work on it are well, from caches alone: [controller.Health].
//
// Before a node is touched it is well if it is ready, has no condition that is bad, and every pod on it is ready, but for those that are finished
// or are ending. Then its baseline is taken: its bad conditions, the DaemonSets that have a ready pod on it, and of each other workload with a ready
// pod on it how many ready pods that has in the whole cluster. It is a line of numbers and digests, of 4 KiB at most.
//
// A node has come back when it is ready, has no bad condition that it had not before, every one of those DaemonSets that is still there and selects
// the node has a ready pod on it, and every one of those workloads has as many ready pods as it had, wherever they are by now, or as many as are
// asked for if that is less. Of a Deployment and a StatefulSet what is asked for is in its spec; of other controllers it is what pods there are, so that
// one which can't replace its pods is not noticed. Pods without a controller, of Nodes, and finished ones don't count: they don't come back. What
// a workload loses on other nodes in the meantime is waited for too. Of more than 200 workloads the others are not looked at.
type Health interface {
	controller.Health
	// Synced reports whether everything is known that there was when the informers began.
	Synced() bool
}

type healthJudge struct {
	o     HealthOptions
	seen  stores
	ready []func() bool
}

// healthAgain is when to ask again where an answer may change with a pod: nobody wakes the controller for that.
const healthAgain = 10 * time.Second

// Reasons of verdicts of a [Health].
const (
	reasonNotSeen           = "NotSeen"
	reasonNotReady          = "NotReady"
	reasonCondition         = "BadCondition"
	reasonPodNotReady       = "PodNotReady"
	reasonDaemonSetNotReady = "DaemonSetNotReady"
	reasonWorkMissing       = "WorkMissing"
	reasonBaseline          = "BaselineUnreadable"
)

// NewHealth returns a Health over the informers of Nodes, pods, Deployments, StatefulSets and DaemonSets, all of which are
// required: see [FactoryInformers]. Their owner runs them; those of package drain/kube will do, which keep less of each object.
// A controller must not pass before its Synced.
func NewHealth(in Informers, o HealthOptions) (Health, error) {
	h, err := newHealth(in, o)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func newHealth(in Informers, o HealthOptions) (*healthJudge, error) {
	check := option.For("rollout/kube.NewHealth", informer.ErrMissing)
	for _, part := range []struct {
		name string
		in   Informer
	}{
		{"Nodes", in.Nodes}, {"Pods", in.Pods},
		{"Deployments", in.Deployments}, {"StatefulSets", in.StatefulSets}, {"DaemonSets", in.DaemonSets},
	} {
		check.Require("Informers."+part.name, part.in, "see FactoryInformers")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	h := &healthJudge{o: o}
	synced, err := h.seen.over(in)
	if err != nil {
		return nil, fmt.Errorf("rollout/kube.NewHealth: %w", err)
	}
	h.ready = synced
	return h, nil
}

// Synced implements [Health].
func (h *healthJudge) Synced() bool {
	return !slices.ContainsFunc(h.ready, func(synced func() bool) bool { return !synced() })
}

// Baseline implements [controller.Health].
func (h *healthJudge) Baseline(_ context.Context, n controller.Node) (string, error) {
	node, err := h.node(n)
	if err != nil {
		return "", fmt.Errorf("looking at node %q as it is before: %w", n.Name, err)
	}
	return h.baseline(node).String(), nil
}

// Verdict implements [controller.Health].
func (h *healthJudge) Verdict(_ context.Context, n controller.Node, baseline string) rollout.Verdict {
	if h.seen.nodes == nil {
		return rollout.Verdict{}
	}
	node, err := h.node(n)
	if err != nil {
		return verdict(rollout.Unknown, reasonNotSeen, "%v", err)
	}
	if baseline == "" {
		return h.before(node)
	}
	then, err := readBaseline(baseline)
	if err != nil {
		return verdict(rollout.Unknown, reasonBaseline, "what the node was like before can't be read: %v", err)
	}
	return h.after(node, then)
}

func verdict(a rollout.Answer, reason, format string, args ...any) rollout.Verdict {
	return rollout.Verdict{From: "health", Answer: a, Reason: reason, Message: fmt.Sprintf(format, args...), RetryAfter: healthAgain}
}

// node is the Node that is meant, as it is seen.
func (h *healthJudge) node(n controller.Node) (*corev1.Node, error) {
	if !h.Synced() {
		return nil, errors.New("what there is on it is not known yet")
	}
	node, found := h.seen.node(n.Name)
	if !found || string(node.UID) != n.UID {
		return nil, fmt.Errorf("there is no Node with UID %q in sight", n.UID)
	}
	return node, nil
}

// before is the verdict on a node that is to be touched.
func (h *healthJudge) before(node *corev1.Node) rollout.Verdict {
	if v, bad := h.conditions(node, nil); bad {
		return v
	}
	var sick []string
	for _, pod := range h.seen.onNode(node.Name) {
		if isFinished(pod) || pod.DeletionTimestamp != nil || isReady(pod) || h.ignores(pod) {
			continue
		}
		sick = append(sick, pod.Namespace+"/"+pod.Name)
	}
	if len(sick) > 0 {
		return verdict(rollout.Deny, reasonPodNotReady, "pod %q is not ready%s", slices.Min(sick), andMore(len(sick)))
	}
	return rollout.Verdict{From: "health", Answer: rollout.Allow}
}

// after is the verdict on a node that is to have come back to what it was.
func (h *healthJudge) after(node *corev1.Node, then baseline) rollout.Verdict {
	if v, bad := h.conditions(node, then.bad); bad {
		return v
	}
	if missing := h.daemonsMissing(node, then.daemons); len(missing) > 0 {
		return verdict(rollout.Deny, reasonDaemonSetNotReady, "DaemonSet %q had a ready pod on the node, and has none%s", missing[0], andMore(len(missing)))
	}
	if missing := h.workMissing(then.work); len(missing) > 0 {
		return verdict(rollout.Deny, reasonWorkMissing, "%s%s", missing[0], andMore(len(missing)))
	}
	return rollout.Verdict{From: "health", Answer: rollout.Allow}
}

// conditions is the verdict on a node that is not ready, or has a bad condition that it had not before.
func (h *healthJudge) conditions(node *corev1.Node, then []string) (rollout.Verdict, bool) {
	for _, c := range h.bad(node) {
		switch {
		case c.Type == corev1.NodeReady:
			return verdict(rollout.Deny, reasonNotReady, "the node is not ready: %s", c.Message), true
		case !slices.Contains(then, string(c.Type)):
			return verdict(rollout.Deny, reasonCondition, "condition %s of the node is %s: %s", c.Type, c.Status, c.Message), true
		}
	}
	return rollout.Verdict{}, false
}

// bad are the conditions of a node that are bad, Ready first. A node that says nothing of it is not ready.
func (h *healthJudge) bad(node *corev1.Node) []corev1.NodeCondition {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Message: "it does not say that it is"}
	var all []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			ready = c
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if c.Status != corev1.ConditionFalse {
				all = append(all, c)
			}
		default:
			if c.Status == corev1.ConditionTrue && slices.Contains(h.o.Bad, c.Type) {
				all = append(all, c)
			}
		}
	}
	if ready.Status != corev1.ConditionTrue {
		all = slices.Insert(all, 0, ready)
	}
	return all
}

func (h *healthJudge) ignores(pod *corev1.Pod) bool { return h.o.Ignore != nil && h.o.Ignore(pod) }

func andMore(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n-1)
}
