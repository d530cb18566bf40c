// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// attempts is what a rollout remembers of a node.
func attempts(v *view.Rollout, uid string) []Event {
	var all []Event
	name := v.Object.Name
	for _, o := range v.Snapshot.Progress.Outcomes {
		if o.UID == uid {
			all = append(all, Event{stampOf(o.At), fmt.Sprintf("rollout %s: the attempt has ended: %s", name, o.Result)})
		}
	}
	e, known := v.Snapshot.Progress.Nodes[uid]
	if !known {
		return all
	}
	if !e.Admitted.IsZero() {
		all = append(all, Event{stampOf(e.Admitted), fmt.Sprintf("rollout %s: got its slot, for attempt %d", name, e.Attempt)})
	}
	if !e.Since.IsZero() {
		all = append(all, Event{stampOf(e.Since), fmt.Sprintf("rollout %s: seen as %s%s", name, e.State, failures(e.Attempts, e.Deferrals))})
	}
	if !e.NotBefore.IsZero() {
		all = append(all, Event{stampOf(e.NotBefore), fmt.Sprintf("rollout %s: is not tried again before that", name)})
	}
	return all
}

func failures(attempts, deferrals int) string {
	var parts []string
	if attempts > 0 {
		parts = append(parts, "has failed here "+times(attempts))
	}
	if deferrals > 0 {
		parts = append(parts, "was put off "+times(deferrals))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; the revision " + strings.Join(parts, ", and ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// changes are the times at which conditions have changed. Why they are so may have changed since.
func changes(n *corev1.Node, sh *v1alpha1.NodeShadow) []Event {
	all := []Event{{stampOf(n.CreationTimestamp.Time), "the Node was created"}}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && !c.LastTransitionTime.IsZero() {
			all = append(all, Event{stampOf(c.LastTransitionTime.Time), fmt.Sprintf("Ready became %s: %s", c.Status, orDash(c.Reason))})
		}
	}
	if n.Spec.Unschedulable {
		for _, t := range n.Spec.Taints {
			if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
				all = append(all, Event{stampOf(t.TimeAdded.Time), "it was cordoned"})
			}
		}
	}
	if sh == nil {
		return all
	}
	all = append(all, conditions("the agent", sh.Status.Conditions)...)
	if c := sh.Status.Config; c != nil {
		all = append(all, conditions("the config", c.Conditions)...)
		for _, r := range c.Rejected {
			if !r.Time.IsZero() {
				all = append(all, Event{stampOf(r.Time.Time), fmt.Sprintf("the config %s/%s was rejected: %s", r.Namespace, r.Name, r.Reason)})
			}
		}
	}
	return all
}

func conditions(whose string, conditions []metav1.Condition) []Event {
	var all []Event
	for _, c := range conditions {
		if !c.LastTransitionTime.IsZero() {
			text := fmt.Sprintf("%s: %s is %s since then, by now for %s", whose, c.Type, c.Status, c.Reason)
			if c.Message != "" {
				text += ": " + c.Message
			}
			all = append(all, Event{stampOf(c.LastTransitionTime.Time), text})
		}
	}
	return all
}

// named is how many nodes or pods are named.
const named = 8

// Text is the report for people.
func (w Why) Text() string {
	var b strings.Builder
	if len(w.Rollouts) == 0 {
		fmt.Fprintf(&b, "Node %s is in no rollout: no selector or group matches it.\n", page.Clean(w.Node))
	}
	for i := range w.Rollouts {
		b.WriteString(w.in(&w.Rollouts[i]))
	}
	facts := page.Table{}
	facts.Fact("Node", w.is())
	for _, c := range w.Is.Conditions {
		facts.Fact("", strings.TrimSuffix(fmt.Sprintf("%s is %s, %s: %s", c.Type, c.Status, orDash(c.Reason), c.Message), ": "))
	}
	if sh := w.Shadow; sh == nil {
		facts.Fact("Agent", "it has no NodeShadow: no controller looks after it, or has not begun to")
	} else {
		facts.Fact("Runs", sh.runs())
		facts.Fact("Agent", sh.says())
	}
	if s := w.Slot; s != nil {
		facts.Factf("Slot", "attempt %d, for rollout %s%s; counts for %s", s.Attempt, s.Rollout, marked(s.State), orDash(strings.Join(counted(s.Keys), ", ")))
	}
	facts.Facts("To drain", w.drain())
	facts.Facts("Config", configLines(w.Config))
	b.WriteString("\n" + facts.String())
	if len(w.Story) > 0 {
		story := page.Table{}
		story.Row("WHEN", "WHAT HAPPENED")
		for _, e := range w.Story {
			story.Row(page.Ago(e.Time.Time, w.At.Time), e.What)
		}
		b.WriteString("\n" + story.String())
	}
	return b.String()
}

func (w *Why) in(in *NodeIn) string {
	t := page.Table{}
	t.Factf("Node", "%s in rollout %s, which is %s", w.Node, in.Rollout, orDash(in.Phase))
	if in.Error != "" {
		t.Facts("Error", strings.Split(in.Error, "\n")) // there may be several, each of which names its field
		return t.String()
	}
	t.Factf("Why", "%s: %s", in.Reason, in.What)
	t.Fact("Detail", in.Detail)
	t.Fact("State", in.State)
	t.Fact("Behind", some(in.Behind))
	if in.Ahead > 0 {
		t.Factf("Ahead", "%s before it", page.Nodes(int64(in.Ahead)))
	}
	if in.Since != nil {
		t.Fact("Since", page.Ago(in.Since.Time, w.At.Time))
	}
	if in.Until != nil {
		t.Factf("Until", "%s at the latest, by itself", page.Ago(in.Until.Time, w.At.Time))
	}
	t.Fact("What helps", in.Change)
	node := "NODE"
	if w.Slot != nil && w.Slot.State != "" {
		node = w.Node
	}
	t.Facts("You can", commands(in.Verbs, in.Rollout, node))
	return t.String()
}

func (w *Why) is() string {
	text := "not ready"
	if w.Is.Ready {
		text = "ready"
	}
	switch {
	case w.Is.Cordoned && w.Is.Attempt > 0:
		text += fmt.Sprintf(", cordoned by the rollout for attempt %d", w.Is.Attempt)
	case w.Is.Cordoned:
		text += ", cordoned, and not by a rollout"
	}
	if w.Is.Zone != "" {
		text += ", zone " + w.Is.Zone
	}
	return text
}

func (sh *Shadow) runs() string {
	text := "not known"
	if sh.Runs != "" {
		text = name(sh.Runs)
	}
	if sh.Wanted != "" && sh.Wanted != sh.Runs {
		text += ", was last ordered " + name(sh.Wanted)
	}
	if sh.Previous != "" {
		text += ", ran " + name(sh.Previous) + " before"
	}
	if sh.Known && !sh.Revertible && sh.Previous != "" {
		text += "; there is no way back from what it runs"
	}
	return text
}

func (sh *Shadow) says() string {
	switch {
	case !sh.Known:
		return "the agent has not spoken yet: is it running on the node?"
	case sh.Granted > sh.Answered:
		return fmt.Sprintf("attempt %d is granted, the agent has answered up to %d", sh.Granted, sh.Answered)
	case sh.Answered == 0:
		return "no attempt so far"
	}
	text := fmt.Sprintf("attempt %d: %s", sh.Answered, sh.Phase)
	if sh.Reason != "" {
		text += ", " + sh.Reason
	}
	if sh.Message != "" {
		text += ": " + sh.Message
	}
	return text
}

func (w *Why) drain() (lines []string) {
	if len(w.Pods) == 0 {
		return []string{"no pod is on it that would have to leave"}
	}
	var stay, leave []string
	for _, p := range w.Pods {
		switch {
		case p.Ending:
			leave = append(leave, p.Name+" (ending)")
		case len(p.Budgets) > 1:
			stay = append(stay, fmt.Sprintf("%s (counted by %d budgets, %s: the API server refuses to evict it)", p.Name, len(p.Budgets), some(p.Budgets)))
		case p.Allowed != nil && *p.Allowed <= 0:
			stay = append(stay, fmt.Sprintf("%s (budget %s allows none now)", p.Name, p.Budgets[0]))
		default:
			leave = append(leave, p.Name)
		}
	}
	if len(stay) > 0 {
		lines = append(lines, "can't be evicted now: "+some(stay))
	}
	if len(leave) > 0 {
		lines = append(lines, "can leave: "+some(leave))
	}
	return lines
}

func configLines(c *configsync.NodeConfigStatus) (lines []string) {
	if c == nil {
		return nil
	}
	for _, o := range c.Conditions {
		lines = append(lines, fmt.Sprintf("%s is %s, %s: %s", o.Type, o.Status, o.Reason, o.Message))
	}
	for _, p := range []struct {
		what   string
		config *configsync.Config
	}{{"in use", c.Active}, {"assigned", c.Assigned}, {"last known good", c.LastKnownGood}} {
		if p.config != nil {
			lines = append(lines, p.what+": "+p.config.Display)
		}
	}
	if t := c.Trial; t != nil {
		lines = append(lines, fmt.Sprintf("on trial: %d of %d healthy seconds, %d of %d starts against it", t.HealthySeconds, t.NeededSeconds,
			t.CountedStarts, t.AllowedStarts))
	}
	for _, trouble := range []string{c.Error, c.Alarm} {
		if trouble != "" {
			lines = append(lines, trouble)
		}
	}
	return lines
}

// counted are the keys that have a value: a node without a zone counts for none.
func counted(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return strings.HasSuffix(k, "/") })
}

func marked(state string) string {
	if state == "" {
		return ""
	}
	return ", marked " + state
}

// name is that of "name@digest".
func name(ref string) string {
	n, _, _ := strings.Cut(ref, "@")
	return n
}

// some names the first ones, and how many there are besides.
func some(names []string) string {
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
