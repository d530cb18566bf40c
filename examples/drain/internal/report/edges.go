// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// someNames is how many pods a line about several names.
const someNames = 3

// A Log tells a drain as one line per edge: what has changed since the last status, and nothing twice.
type Log struct {
	set   string
	stuck bool
	nodes map[string]string          // what was said last of each node
	gone  map[types.UID]bool         // pods that were said to have been asked
	held  map[types.UID]drain.Reason // the reason that was said last of each pod
	disks map[string]map[string]bool // volumes that were said to be attached, by node
}

// Next returns the lines about what is new in s. Times are in the zone of now.
func (l *Log) Next(s drain.SetStatus, now time.Time) []string {
	if l.nodes == nil {
		l.nodes, l.gone = map[string]string{}, map[types.UID]bool{}
		l.held, l.disks = map[types.UID]drain.Reason{}, map[string]map[string]bool{}
	}
	var lines []string
	if said := whole(s); said != l.set {
		if l.set = said; said != "" {
			lines = append(lines, said)
		}
	}
	for _, n := range s.Nodes {
		state, details := l.state(n), slices.Concat(l.evicted(n), l.blockers(n, now), l.attached(n))
		if n.Counts.Remaining > 0 {
			lines = slices.Concat(lines, state, details)
		} else { // the details are how it came to that
			lines = slices.Concat(lines, details, state)
		}
	}
	if stuck := Stuck(s); stuck != l.stuck {
		if l.stuck = stuck; stuck {
			lines = append(lines, nothingMoves)
		}
	}
	return lines
}

// state tells of a node that is in another phase, or in it for another reason.
func (l *Log) state(n drain.Status) []string {
	said := phase(n)
	if said == l.nodes[n.Node] {
		return nil
	}
	l.nodes[n.Node] = said
	return []string{fmt.Sprintf("%s: %s", n.Node, sentence(n))}
}

// phase is what makes an edge of a node.
func phase(n drain.Status) string {
	word, _, _ := strings.Cut(own(n), ":")
	return fmt.Sprintf("%s %s %s", n.Phase, n.Outcome, word)
}

// sentence is the state of a node.
func sentence(n drain.Status) string {
	t := strings.ToLower(string(n.Phase))
	switch {
	case untouched(n):
		t = "not held, nothing to give back"
	case n.Phase == drain.Draining && n.Counts.Remaining > 0:
		t += fmt.Sprintf(", %s to leave", count(n.Counts.Remaining, "pod"))
	case n.Phase == drain.Drained:
		t += fmt.Sprintf(", %s evicted", count(n.Counts.Evicted, "pod"))
		if !n.Finished.IsZero() && !n.Started.IsZero() {
			t += " in " + since(n.Started, n.Finished)
		}
	}
	if len(n.Forced) > 0 && n.Phase == drain.Drained {
		t += fmt.Sprintf(", %d of them deleted past a budget", len(n.Forced))
	}
	if n.Outcome == drain.OutcomeBlocked {
		t += ", blocked until somebody acts"
	}
	if r := own(n); r != "" {
		t += ": " + r
	}
	return t
}

// untouched reports whether a node was to be given back that the holder hadn't got.
func untouched(n drain.Status) bool { return n.Phase == drain.Released && n.Started.IsZero() }

// whole is what is to be said of the set as a whole, and not of one node already.
func whole(s drain.SetStatus) string {
	if slices.ContainsFunc(s.Nodes, func(n drain.Status) bool { return n.Reason != "" && n.Reason == s.Reason }) {
		return ""
	}
	return reason(s.Reason, nil, s.Message)
}

// own is the reason and the sentence that a node has of its own. Where its pods have the reason, they are told of, one by one.
func own(n drain.Status) string {
	if n.Reason == "" && n.Counts.Remaining > 0 {
		return ""
	}
	if slices.ContainsFunc(n.Blockers, func(b drain.Blocker) bool { return b.Reason == n.Reason }) {
		return ""
	}
	return reason(n.Reason, nil, advised(n.Message, n.Reason, ""))
}

// evicted tells of each pod that the server has agreed to.
func (l *Log) evicted(n drain.Status) []string {
	forced := map[types.UID]bool{}
	for _, p := range n.Forced {
		forced[p.UID] = true
	}
	var lines []string
	for _, p := range n.Evicted {
		if l.gone[p.UID] {
			continue
		}
		l.gone[p.UID] = true
		what := "evicted"
		if forced[p.UID] {
			what = "deleted past its budget"
		}
		lines = append(lines, fmt.Sprintf("%s: %s %s", n.Node, what, p))
	}
	return lines
}

// blockers tells of pods that don't leave, those with one cause in one line.
func (l *Log) blockers(n drain.Status, now time.Time) []string {
	var order []string
	groups := map[string][]drain.Blocker{}
	for _, b := range n.Blockers {
		if !worthTelling(b) || l.held[b.UID] == b.Reason {
			continue
		}
		l.held[b.UID] = b.Reason
		key := fmt.Sprint(b.Action, b.Reason, b.Namespace, b.Budgets, b.Hook, b.Next, b.NextAt)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], b)
	}
	var lines []string
	for _, key := range order {
		lines = append(lines, fmt.Sprintf("%s: %s", n.Node, together(groups[key], now)))
	}
	return lines
}

// together is one sentence about pods with one cause.
func together(list []drain.Blocker, now time.Time) string {
	first := list[0]
	refs := make([]drain.PodRef, len(list))
	for i, b := range list {
		refs[i] = b.PodRef
	}
	what := "waiting"
	if first.Action == drain.Block {
		what = "blocked"
	}
	t := fmt.Sprintf("%s %s: %s", what, pods(refs, someNames), reason(first.Reason, first.Budgets, advised(first.Message, first.Reason, first.Hook)))
	if n := next(first.Next, first.NextAt, now); n != "" {
		t += "; next: " + n
	}
	return t
}

// worthTelling leaves out what is only a moment's wait for the drain itself.
func worthTelling(b drain.Blocker) bool {
	switch b.Reason {
	case drain.Terminating, drain.WaitingForRate, drain.WaitingForOrder, drain.WindowClosed, drain.ServerOverloaded:
		return b.Action == drain.Block
	}
	return b.Action != drain.Evict && b.Action != drain.Skip
}

// attached tells of volumes that are waited for.
func (l *Log) attached(n drain.Status) []string {
	if n.Phase != drain.Settling {
		return nil
	}
	if l.disks[n.Node] == nil {
		l.disks[n.Node] = map[string]bool{}
	}
	var lines []string
	for _, a := range n.Attached {
		if !l.disks[n.Node][a.Volume] {
			l.disks[n.Node][a.Volume] = true
			lines = append(lines, fmt.Sprintf("%s: volume %s is still attached, used by %s", n.Node, a.Volume, pods(a.Pods, someNames)))
		}
	}
	return lines
}
