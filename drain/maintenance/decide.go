// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// holderPrefix begins the name of each holder of this package.
const holderPrefix = "nodemaintenance/"

// holderOf is who an object is to package drain: another object of the same name is another holder.
func holderOf(uid types.UID) string { return holderPrefix + string(uid) }

// A decision is what an object asks of package drain at one time.
type decision struct {
	// problem says why nothing can be asked.
	problem error
	// targets are the names of all nodes that are meant, sorted. set is about those that may be worked on now, nil for
	// none.
	targets []string
	set     *drain.Set
	// strays are nodes that were entered and are not meant any more, or all that are meant when the object is deleted.
	strays []string
	// opens is when the next window opens; waiting that none is open, and nothing was begun; over that none follows.
	opens         time.Time
	waiting, over bool
	// late is that the deadline has passed.
	late bool
	// policy is for the preview: without windows, as it is about what would leave if one were open.
	policy drain.Policy
}

// decideWork is pure: what is asked for is a function of the object, the Nodes with their marks, and the time.
func decideWork(o *v1alpha1.NodeMaintenance, nodes []*corev1.Node, now time.Time) decision {
	entered := enteredNodes(nodes, holderOf(o.UID))
	if o.DeletionTimestamp != nil {
		return decision{strays: releasedNodes(o, nodes, entered)}
	}
	d := decision{}
	if d.problem = checkSpec(&o.Spec); d.problem != nil {
		return d
	}
	if o.Spec.Policy != nil {
		d.policy = *o.Spec.Policy.DeepCopy()
	}
	d.targets = targetsOf(&o.Spec, nodes)
	for _, name := range entered {
		if !slices.Contains(d.targets, name) {
			d.strays = append(d.strays, name)
		}
	}
	d.late = o.Spec.Deadline != nil && !now.Before(o.Spec.Deadline.Time)
	open, opens := windowAt(o.Spec.Windows, now)
	d.opens, d.over = opens, !open && opens.IsZero()
	work := d.targets
	if !open || d.late { // what was begun goes on, as far as package drain lets it
		work = keepNames(d.targets, entered)
		d.waiting = !open && len(work) == 0 && !d.late
	} else if d.problem = checkHold(&o.Spec, entered, now); d.problem != nil {
		return d
	}
	if len(work) > 0 {
		d.set = setOf(o, work, d.policy)
	}
	return d
}

// setOf is what is asked for of nodes that may be worked on.
func setOf(o *v1alpha1.NodeMaintenance, names []string, policy drain.Policy) *drain.Set {
	for _, w := range o.Spec.Windows {
		policy.Windows = append(policy.Windows, drain.Window{From: timeOf(w.From), Until: timeOf(w.Until)})
	}
	s := &drain.Set{
		Request: drain.Request{
			Holder: holderOf(o.UID), Maintenance: string(o.UID), Mode: drain.Mode(o.Spec.Mode), Policy: policy,
			Deadline: timeOf(o.Spec.Deadline),
		},
		Groups: [][]string{names}, SkipFailed: true,
	}
	if o.Spec.MaxConcurrent != nil {
		s.MaxNodes = *o.Spec.MaxConcurrent
	}
	if s.Request.Mode == drain.Hold {
		s.Request.HoldUntil = s.Request.Deadline
	}
	return s
}

// releaseOf gives nodes back. The policy is the zero one: an object whose policy is wrong must not keep them.
func releaseOf(uid types.UID, names []string) drain.Set {
	return drain.Set{
		Request: drain.Request{Holder: holderOf(uid), Maintenance: string(uid), Mode: drain.Release},
		Groups:  [][]string{names},
	}
}

// checkSpec finds what the API server does not.
func checkSpec(s *v1alpha1.NodeMaintenanceSpec) error {
	var errs []error
	if _, err := selectorOf(s.NodeSelector); err != nil {
		errs = append(errs, fmt.Errorf("spec.nodeSelector cannot be read: %w", err))
	}
	if (s.NodeName == "") == (s.NodeSelector == nil) {
		errs = append(errs, errors.New("spec must have exactly one of nodeName and nodeSelector"))
	}
	if p := s.Policy; p != nil {
		if err := p.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("spec.policy is wrong: %w", err))
		}
		if len(p.Windows) > 0 {
			errs = append(errs, fmt.Errorf("spec.policy.windows has %d windows, want none: use spec.windows", len(p.Windows)))
		}
		if p.Soak != 0 {
			const why = "nodes are given back when this object goes, and nothing watches them after that"
			errs = append(errs, fmt.Errorf("spec.policy.soak is %s, want none: %s", p.Soak, why))
		}
	}
	return errors.Join(errs...)
}

// checkHold finds a hold that would be too long. One that has begun is not asked again.
func checkHold(s *v1alpha1.NodeMaintenanceSpec, entered []string, now time.Time) error {
	if s.Mode != v1alpha1.Mode(drain.Hold) || len(entered) > 0 {
		return nil
	}
	if s.Deadline == nil {
		return fmt.Errorf("spec.deadline is not set, mode Hold wants a time at most %s after its beginning", drain.MaxHold)
	}
	if left := s.Deadline.Sub(now); left > drain.MaxHold {
		return fmt.Errorf("spec.deadline is %s, want at most %s after the hold begins: set an earlier one, or a window that "+
			"opens later", s.Deadline.UTC().Format(time.RFC3339), drain.MaxHold)
	}
	return nil
}

// selectorOf is nil for no selector.
func selectorOf(s *v1alpha1.NodeSelector) (labels.Selector, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // no selector is no error
	}
	all := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range s.MatchLabels {
		all.MatchLabels[k] = string(v)
	}
	for _, r := range s.MatchExpressions {
		values := make([]string, len(r.Values))
		for i, v := range r.Values {
			values[i] = string(v)
		}
		all.MatchExpressions = append(all.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: values,
		})
	}
	if len(all.MatchLabels)+len(all.MatchExpressions) == 0 {
		return nil, errors.New("it is empty and would select every node, want matchLabels or matchExpressions")
	}
	return metav1.LabelSelectorAsSelector(all)
}

// targetsOf are the nodes that are meant. The one of a name is meant also while it is not there.
func targetsOf(s *v1alpha1.NodeMaintenanceSpec, nodes []*corev1.Node) []string {
	if s.NodeName != "" {
		return []string{s.NodeName}
	}
	selector, err := selectorOf(s.NodeSelector)
	if err != nil || selector == nil {
		return nil
	}
	var names []string
	for _, n := range nodes {
		if selector.Matches(labels.Set(n.Labels)) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// enteredNodes are those whose mark names the holder, sorted. A mark that can't be read names none.
func enteredNodes(nodes []*corev1.Node, holder string) []string {
	var names []string
	for _, n := range nodes {
		if holders, err := drain.HoldersOf(n); err == nil && slices.Contains(holders, holder) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// releasedNodes are all nodes that an object may have entered: those that say so, and, where the cache may be behind,
// those that it means or has reported. Package drain asks the API server about a node of which it is not sure.
func releasedNodes(o *v1alpha1.NodeMaintenance, nodes []*corev1.Node, entered []string) []string {
	names := slices.Concat(entered, targetsOf(&o.Spec, nodes))
	for _, n := range o.Status.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// windowAt reports whether a window is open, and otherwise when the next one opens; zero for never.
func windowAt(windows []v1alpha1.Window, now time.Time) (open bool, next time.Time) {
	if len(windows) == 0 {
		return true, time.Time{}
	}
	for _, w := range windows {
		from, until := timeOf(w.From), timeOf(w.Until)
		switch {
		case !until.IsZero() && !now.Before(until):
		case !now.Before(from):
			return true, time.Time{}
		case next.IsZero() || from.Before(next):
			next = from
		}
	}
	return false, next
}

// keepNames are the names that are among the others too.
func keepNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(others, n) })
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
