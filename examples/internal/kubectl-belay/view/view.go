// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Seen is what was seen of a cluster.
type Seen struct {
	Rollouts  []v1alpha1.Rollout
	Revisions []v1alpha1.Revision
	Shadows   []v1alpha1.NodeShadow
	Ledgers   []v1alpha1.DisruptionLedger
	Nodes     []*corev1.Node
	Pods      []*corev1.Pod
	Budgets   []policyv1.PodDisruptionBudget
	// Health is the verdict on a node that is not touched. Nil goes by the condition Ready alone.
	Health func(*corev1.Node) rollout.Verdict
	// Caps, Gates and OwnNode are what the controller was told besides: the caps over all rollouts of a domain, what holds up the whole fleet, and the
	// node that it runs on, which has its turn last.
	Caps    []protocol.Cap
	Gates   []rollout.Verdict
	OwnNode string
	Now     time.Time
}

// Disabled is the gate of a controller that was switched off, for the reason that was given; see controller.Options.Off.
func Disabled(why string) rollout.Verdict {
	return rollout.Verdict{From: "operator", Answer: rollout.Deny, Reason: "Disabled", Message: why, RetryAfter: time.Second}
}

// A Rollout is one rollout, and what would be decided on it now.
type Rollout struct {
	Object    *v1alpha1.Rollout
	Policy    rollout.Policy
	Snapshot  rollout.Snapshot
	Decisions rollout.Decisions
	// Theirs are the names of the rollouts that come before this one, by the UIDs of the nodes that belong to them.
	Theirs map[string]string
}

// Revision finds a Revision by name.
func (s *Seen) Revision(name string) (*v1alpha1.Revision, bool) {
	for i := range s.Revisions {
		if s.Revisions[i].Name == name {
			return &s.Revisions[i], true
		}
	}
	return nil, false
}

// Node finds a Node by name; nil if there is none.
func (s *Seen) Node(name string) *corev1.Node {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Shadow finds the NodeShadow of a node; nil if there is none.
func (s *Seen) Shadow(node string) *v1alpha1.NodeShadow {
	for i := range s.Shadows {
		if s.Shadows[i].Name == node {
			return &s.Shadows[i]
		}
	}
	return nil
}

// Ledger is that of a domain; nil if there is none.
func (s *Seen) Ledger(domain string) *v1alpha1.DisruptionLedger {
	for i := range s.Ledgers {
		if s.Ledgers[i].Name == domain {
			return &s.Ledgers[i]
		}
	}
	return nil
}

// Decide says what would be decided on a rollout now, under the caps of the others of its domain, and without the nodes that belong to those.
func (s *Seen) Decide(r *v1alpha1.Rollout) (*Rollout, error) {
	v, err := s.look(r)
	if err != nil {
		return nil, err
	}
	owners := s.others(v)
	v.Snapshot.Nodes, v.Theirs = owners.Hide(v.Snapshot.Nodes, v.Policy.UID, v.Snapshot.Ledger)
	if v.Decisions, err = rollout.Plan(v.Snapshot, v.Policy, s.Now); err != nil {
		return nil, fmt.Errorf("rollout %q can't be decided on: %w", r.Name, v1alpha1.InFields(r, err))
	}
	v.Decisions.Yield(v.Theirs)
	v.heedStatus()
	return v, nil
}

// look puts together what is decided on.
func (s *Seen) look(r *v1alpha1.Rollout) (*Rollout, error) {
	heeded := v1alpha1.HeedRollback(r, s.Revision)
	policy, err := v1alpha1.PolicyOf(heeded, s.Revision)
	progress, unread := v1alpha1.ProgressOf(heeded.Status)
	if err := errors.Join(err, unread); err != nil {
		return nil, fmt.Errorf("rollout %q can't be decided on: %w", r.Name, err)
	}
	if r.DeletionTimestamp != nil {
		policy = ending(policy)
	}
	v := &Rollout{Object: r, Policy: policy, Snapshot: rollout.Snapshot{
		Progress: progress, Nodes: s.nodes(r), Gates: slices.Clone(s.Gates), OtherCaps: slices.Clone(s.Caps),
	}}
	for _, stage := range policy.Stages { // what they will say is not known here
		for _, name := range stage.Gates {
			v.Snapshot.Gates = append(v.Snapshot.Gates, rollout.Verdict{From: name, ForStages: true, Answer: rollout.Allow})
		}
	}
	if l := s.Ledger(r.Spec.Domain); l != nil {
		v.Snapshot.Ledger = v1alpha1.LedgerOf(l.Spec)
	}
	return v, nil
}

func (s *Seen) nodes(r *v1alpha1.Rollout) []rollout.Node {
	holder := &drain.NodeDrainer{Holder: "rollout/" + r.Spec.Domain}
	shadows := make(map[string]*v1alpha1.NodeShadow, len(s.Shadows))
	for i := range s.Shadows {
		if s.Shadows[i].Spec.Domain == r.Spec.Domain {
			shadows[s.Shadows[i].Name] = &s.Shadows[i]
		}
	}
	all := make([]rollout.Node, len(s.Nodes))
	for i, n := range s.Nodes {
		all[i] = rollout.Node{
			Name: n.Name, UID: string(n.UID), Labels: n.Labels, Created: n.CreationTimestamp.Time, Own: s.OwnNode != "" && n.Name == s.OwnNode, Health: s.health(n),
		}
		_, held := holder.Held(n.Annotations)
		switch {
		case !Ready(n):
			all[i].Away = "the node is not ready"
		case n.Spec.Unschedulable && !held:
			all[i].Away = "the node is cordoned, and not by a rollout"
		}
		if sh := shadows[n.Name]; sh != nil && sh.Spec.NodeUID == string(n.UID) {
			p := v1alpha1.ShadowOf(sh)
			all[i].Shadow, all[i].Runs = &p, protocol.ParseRevision(sh.Status.Current.String())
			all[i].Irreversible = sh.Status.Known && !sh.Status.Revertible
		}
		if said := saidOf(r, n.Name); said != nil && rollout.Reason(said.Reason) == rollout.ReasonBlocked {
			all[i].Drain.Blocked = said.Message
		}
	}
	return all
}

func (s *Seen) health(n *corev1.Node) rollout.Verdict {
	if s.Health != nil {
		return s.Health(n)
	}
	if Ready(n) {
		return rollout.Verdict{Answer: rollout.Allow}
	}
	return rollout.Verdict{Answer: rollout.Deny, Reason: "NotReady", Message: "the node is not ready"}
}

// Ready reports the condition of that name.
func Ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// saidOf is what the controller has said of a node; nil if nothing.
func saidOf(r *v1alpha1.Rollout, node string) *v1alpha1.NodeReason {
	for i := range r.Status.Nodes {
		if r.Status.Nodes[i].Node == node {
			return &r.Status.Nodes[i]
		}
	}
	return nil
}

// heedStatus puts the controller's word in the place of one's own where it is about the spec as it is: it has seen more.
func (v *Rollout) heedStatus() {
	if v.Object.Status.ObservedGeneration != v.Object.Generation {
		return
	}
	for i := range v.Decisions.Nodes {
		d := &v.Decisions.Nodes[i]
		said := saidOf(v.Object, d.Node)
		if said != nil && (d.Why == nil || string(d.Why.Reason) != said.Reason || d.Why.Reason == rollout.ReasonBlocked) {
			d.Why = &rollout.Why{Reason: rollout.Reason(said.Reason), Message: said.Message}
		}
	}
}

// Meaning is what a reason means to somebody who has not read how rollouts work.
func Meaning(r rollout.Reason) (what, change string) {
	e, _ := rollout.Decisions{Nodes: []rollout.Decision{{Node: "-", Why: &rollout.Why{Reason: r}}}}.Why("-")
	return e.What, e.Change
}

// Pick finds a rollout by name, or the only one there is. Its errors say which there are.
func Pick(all []v1alpha1.Rollout, name string) (*v1alpha1.Rollout, error) {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	slices.Sort(names)
	switch {
	case len(all) == 0:
		return nil, errors.New("there is no Rollout in this cluster; create one first, and see with \"kubectl belay plan -f FILE\" what it would do")
	case name == "" && len(all) > 1:
		return nil, fmt.Errorf("there are %d rollouts, say which one: %s", len(all), strings.Join(names, ", "))
	case name == "":
		return &all[0], nil
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, NotThere("rollout", name, names)
}

// NotThere is the error about a name that does not exist; it says which are near.
func NotThere(kind, name string, names []string) error {
	if near := Near(name, names); len(near) > 0 {
		return fmt.Errorf("there is no %s %q; near are %s", kind, name, strings.Join(near, ", "))
	}
	if len(names) > 0 && len(names) <= 10 {
		return fmt.Errorf("there is no %s %q, only %s", kind, name, strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no %s %q, nor one of a name near that, among %d", kind, name, len(names))
}

// Counts reports whether a budget counts a pod. A budget whose selector can't be read counts none.
func Counts(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	if b.Namespace != p.Namespace || b.Spec.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}
