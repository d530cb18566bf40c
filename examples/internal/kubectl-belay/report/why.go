// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Why is what is known of a node: why it is where it is, and how it came there.
type Why struct {
	Node     string   `json:"node"`
	Rollouts []NodeIn `json:"rollouts"`
	Is       NodeIs   `json:"is"`
	// Shadow is what the controllers ask of the node, and what its agent says; absent if there is none.
	Shadow *Shadow `json:"shadow,omitempty"`
	Slot   *Slot   `json:"slot,omitempty"`
	// Pods are those that a drain has to take off the node.
	Pods   []Pod                        `json:"pods,omitempty"`
	Config *configsync.NodeConfigStatus `json:"config,omitempty"`
	// Story is what happened, as far as objects remember it, the oldest first.
	Story []Event     `json:"story,omitempty"`
	At    metav1.Time `json:"at"`
}

// NodeIn is a node in a rollout.
type NodeIn struct {
	Rollout string `json:"rollout"`
	Phase   string `json:"phase"`
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// What, Detail and Change say why in sentences, and what would change it.
	What   string `json:"what,omitempty"`
	Detail string `json:"detail,omitempty"`
	Change string `json:"change,omitempty"`
	// Behind are the nodes that come to an end before it, Ahead is how many have their turn before it besides.
	Behind []string     `json:"behind,omitempty"`
	Ahead  int          `json:"ahead,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
	Until  *metav1.Time `json:"until,omitempty"`
	// Verbs are what somebody can ask for to that end.
	Verbs []string `json:"verbs,omitempty"`
	// Error says why nothing can be decided on the rollout.
	Error string `json:"error,omitempty"`
}

// NodeIs is what the Node says.
type NodeIs struct {
	Ready    bool   `json:"ready"`
	Cordoned bool   `json:"cordoned"`
	Attempt  int64  `json:"cordonedForAttempt,omitempty"`
	Zone     string `json:"zone,omitempty"`
	// Conditions are those that are not as they should be.
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`
}

// Shadow is the record of the node.
type Shadow struct {
	Known    bool   `json:"known"`
	Runs     string `json:"runs,omitempty"`
	Wanted   string `json:"wanted,omitempty"`
	Previous string `json:"previous,omitempty"`
	Staged   string `json:"staged,omitempty"`
	// Granted is the last attempt that was granted, Answered the last one that the agent has answered, Phase how far that is.
	Granted    int64              `json:"granted"`
	Answered   int64              `json:"answered"`
	Proceed    int64              `json:"proceed"`
	Undo       int64              `json:"undo"`
	Phase      string             `json:"phase,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	Message    string             `json:"message,omitempty"`
	Revertible bool               `json:"revertible"`
	BootID     string             `json:"bootID,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Slot is the right to disrupt the node.
type Slot struct {
	Rollout string   `json:"rollout"`
	Attempt int64    `json:"attempt"`
	State   string   `json:"state,omitempty"`
	Keys    []string `json:"keys,omitempty"`
}

// Pod is a pod that a drain has to take off the node.
type Pod struct {
	Name string `json:"name"`
	// Budgets are the PodDisruptionBudgets that count it. Allowed is what the strictest of them allows now; absent without any.
	Budgets []string `json:"budgets,omitempty"`
	Allowed *int32   `json:"allowed,omitempty"`
	Ending  bool     `json:"ending,omitempty"`
}

// Event is something that happened.
type Event struct {
	Time metav1.Time `json:"time"`
	What string      `json:"what"`
}

// WhyOf is the report on a node, in the rollouts that have something to say of it. The node exists.
func WhyOf(s *view.Seen, node string, rollouts []v1alpha1.Rollout) Why {
	n := s.Node(node)
	w := Why{Node: node, Rollouts: []NodeIn{}, Is: isOf(s, n), At: *stampAt(s.Now)}
	sh := s.Shadow(node)
	if sh != nil {
		w.Shadow, w.Config = shadowOf(sh), sh.Status.Config
	}
	for i := range rollouts {
		r := &rollouts[i]
		v, err := s.Decide(r)
		if err != nil {
			w.Rollouts = append(w.Rollouts, NodeIn{Rollout: r.Name, Phase: string(r.Status.Phase), Error: err.Error()})
			continue
		}
		e, ok := v.Decisions.Why(node)
		if !ok {
			continue
		}
		w.Rollouts = append(w.Rollouts, nodeIn(v, e, node))
		w.Story = append(w.Story, attempts(v, string(n.UID))...)
	}
	w.Slot = slotOf(s, sh, string(n.UID))
	w.Pods = podsOn(s, node)
	w.Story = append(w.Story, changes(n, sh)...)
	slices.SortStableFunc(w.Story, func(a, b Event) int { return a.Time.Compare(b.Time.Time) })
	return w
}

func nodeIn(v *view.Rollout, e rollout.Explanation, node string) NodeIn {
	in := NodeIn{
		Rollout: v.Object.Name, Phase: string(v.Decisions.Phase), What: e.What, Detail: e.Detail, Change: e.Change, Behind: e.Behind, Ahead: e.Ahead,
		Since: stamp(e.Since), Until: stamp(e.Until),
	}
	for _, do := range e.Verbs {
		in.Verbs = append(in.Verbs, strings.ToLower(string(do)))
	}
	for i := range v.Decisions.Nodes {
		if d := &v.Decisions.Nodes[i]; d.Node == node {
			in.State, in.Reason = string(d.State), string(d.Why.Reason)
		}
	}
	return in
}

func isOf(s *view.Seen, n *corev1.Node) NodeIs {
	is := NodeIs{Ready: view.Ready(n), Cordoned: n.Spec.Unschedulable, Zone: n.Labels[corev1.LabelTopologyZone]}
	for i := range s.Ledgers {
		holder := &drain.NodeDrainer{Holder: "rollout/" + s.Ledgers[i].Name}
		if attempt, held := holder.Held(n.Annotations); held {
			is.Attempt = attempt
		}
	}
	for _, c := range n.Status.Conditions {
		good := corev1.ConditionFalse
		switch c.Type {
		case corev1.NodeReady, corev1.NodeConditionType(configsync.ConditionConfigOK):
			good = corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
		default:
			continue // nobody knows what is good for it
		}
		if c.Status != good {
			is.Conditions = append(is.Conditions, c)
		}
	}
	return is
}

func shadowOf(sh *v1alpha1.NodeShadow) *Shadow {
	st, sp := &sh.Status, &sh.Spec
	return &Shadow{
		Known: st.Known, Runs: st.Current.String(), Wanted: sp.Revision.String(), Previous: st.Previous.String(), Staged: st.Staged.String(),
		Granted: sp.Grant, Answered: st.Attempt, Proceed: sp.Proceed, Undo: sp.Undo, Phase: string(st.Phase), Reason: st.Reason, Message: st.Message,
		Revertible: st.Revertible, BootID: st.BootID, Conditions: st.Conditions,
	}
}

func slotOf(s *view.Seen, sh *v1alpha1.NodeShadow, uid string) *Slot {
	for i := range s.Ledgers {
		for _, o := range s.Ledgers[i].Spec.Slots {
			if o.UID != uid || sh != nil && sh.Spec.Domain != s.Ledgers[i].Name {
				continue
			}
			slot := &Slot{Rollout: o.Rollout, Attempt: o.Attempt, State: string(o.State), Keys: o.Keys}
			for j := range s.Rollouts {
				if string(s.Rollouts[j].UID) == o.Rollout {
					slot.Rollout = s.Rollouts[j].Name
				}
			}
			return slot
		}
	}
	return nil
}

// podsOn are the pods of a node that a drain has to take off: not those of DaemonSets, of the kubelet itself, and finished ones.
func podsOn(s *view.Seen, node string) []Pod {
	var all []Pod
	for _, p := range s.Pods {
		owner := metav1.GetControllerOf(p)
		finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		if p.Spec.NodeName != node || finished || mirror || owner != nil && owner.Kind == "DaemonSet" {
			continue
		}
		pod := Pod{Name: p.Namespace + "/" + p.Name, Ending: p.DeletionTimestamp != nil}
		for i := range s.Budgets {
			b := &s.Budgets[i]
			if view.Counts(b, p) {
				pod.Budgets = append(pod.Budgets, b.Name)
				if pod.Allowed == nil || b.Status.DisruptionsAllowed < *pod.Allowed {
					pod.Allowed = &b.Status.DisruptionsAllowed
				}
			}
		}
		all = append(all, pod)
	}
	slices.SortFunc(all, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// stampOf is a time in the form of a report; zero stays zero.
func stampOf(t time.Time) metav1.Time { return *stampAt(t) }
