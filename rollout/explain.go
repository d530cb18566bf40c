// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Explanation says in sentences why a node waits, or what is being done with it.
type Explanation struct {
	Node string
	// What is what it waits for, or what is being done with it; Detail says it with names and numbers.
	What, Detail string
	// Behind are the nodes that have to come to an end before it, as far as it waits for others: those under way, and those that hold up its stage.
	// Ahead is how many nodes have their turn before it besides.
	Behind []string
	Ahead  int
	// Since and Until are since when, and until when at the latest if nothing else happens; zero if that is not known.
	Since, Until time.Time
	// Change is what would change it. Verbs are what somebody can ask for now to that end; none if asking does not help.
	Change string
	Verbs  []Do
}

// Why says why a node waits, or what is being done with it; false if there is no decision on a node of that name.
func (d Decisions) Why(node string) (Explanation, bool) {
	i := slices.IndexFunc(d.Nodes, func(n Decision) bool { return n.Node == node })
	if i < 0 || d.Nodes[i].Why == nil {
		return Explanation{Node: node}, false
	}
	n := &d.Nodes[i]
	say := sayings(n.Why.Reason)
	e := Explanation{Node: node, What: say.what, Detail: n.Why.Message, Change: say.change}
	if n.Why.After > 0 {
		e.Until = d.At.Add(n.Why.After)
	}
	for _, do := range say.verbs {
		if _, err := verbRule(do, d.Phase); err == nil && (do != Acknowledge || d.acknowledgeable(n, say.others)) {
			e.Verbs = append(e.Verbs, do)
		}
	}
	if p, known := d.Progress.Nodes[n.UID]; known && d.Ledger.Slot(n.UID) != nil {
		e.Since = p.Since
	}
	if n.Why.Reason == reasonSoak {
		e.Since = d.Progress.SoakSince
	}
	if say.others {
		e.Behind, e.Ahead = d.before(n, i)
	}
	return e, true
}

// acknowledgeable reports whether the capacity of the node can be given up, or that of another one.
func (d *Decisions) acknowledgeable(n *Decision, others bool) bool {
	return slices.ContainsFunc(d.Nodes, func(o Decision) bool {
		slot := d.Ledger.Slot(o.UID)
		return slot != nil && slot.State != "" && (others || o.UID == n.UID)
	})
}

// before are the nodes for which one waits, and how many have their turn before it. Those that others have hold up their stage, and have no turn.
func (d *Decisions) before(n *Decision, at int) (behind []string, ahead int) {
	for _, s := range d.Ledger.Slots {
		if s.UID != n.UID {
			behind = append(behind, s.Node)
		}
	}
	for i := range d.Nodes {
		o := &d.Nodes[i]
		if i == at || d.Ledger.Slot(o.UID) != nil || o.Why == nil || o.Why.Reason == ReasonUpToDate {
			continue
		}
		switch held := o.Why.Reason.holds(); {
		case held && o.Stage >= 0 && o.Stage < n.Stage:
			behind = append(behind, o.Node)
		case !held && i < at:
			ahead++
		}
	}
	return behind, ahead
}

// holds reports whether a node does not have its turn for what is so on the node alone, or for another rollout.
func (r Reason) holds() bool {
	return r == ReasonUnhealthy || r == ReasonAway || r == ReasonNoAgent || r == ReasonOther
}

// named is how many nodes are named in a sentence.
const named = 5

// String says it all, in sentences.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Node %q: %s.", e.Node, e.What)
	if e.Detail != "" {
		fmt.Fprintf(&b, " In detail: %s.", strings.TrimSuffix(e.Detail, "."))
	}
	if n := len(e.Behind); n > 0 {
		fmt.Fprintf(&b, " It waits behind %s", strings.Join(e.Behind[:min(n, named)], ", "))
		if n > named {
			fmt.Fprintf(&b, " and %d others", n-named)
		}
		b.WriteString(".")
	}
	if e.Ahead > 0 {
		fmt.Fprintf(&b, " %d more have their turn before it.", e.Ahead)
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " That is so since %s.", e.Since.UTC().Format(time.RFC3339))
	}
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, " By itself that changes at %s at the latest.", e.Until.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, " %s.", e.Change)
	if len(e.Verbs) > 0 {
		verbs := make([]string, 0, len(e.Verbs))
		for _, v := range e.Verbs {
			verbs = append(verbs, string(v))
		}
		fmt.Fprintf(&b, " Somebody can ask for: %s.", strings.Join(verbs, ", "))
	}
	return b.String()
}

// A saying is what a reason means to somebody who has not read how rollouts work.
type saying struct {
	what, change string
	verbs        []Do
	others       bool // it waits for others
}
