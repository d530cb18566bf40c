// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/drain"
)

// maxNodes is how many nodes are shown one by one.
const maxNodes = 12

// Live is the state of a drain as lines to be drawn over: the nodes, then the pods that don't leave, with the most urgent first. Times
// are in the zone of now.
func Live(s drain.SetStatus, now time.Time) []string {
	shown, rest := foremost(s.Nodes)
	rows := []string{row("NODE", "PHASE", "TO LEAVE", "BLOCKED", "WAITING", "ENDING", "EVICTED", "FOR")}
	var sentences []string
	for _, n := range shown {
		c := n.Counts
		rows = append(rows, row(n.Node, state(n), fmt.Sprint(c.Remaining), number(c.Blocked), number(c.Waiting), number(c.Terminating),
			number(c.Evicted), lasted(n, now)))
		if why := own(n); why != "" && n.Phase != drain.Pending {
			sentences = append(sentences, n.Node+": "+why)
		}
	}
	lines := columns(rows)
	if len(rest) > 0 {
		lines = append(lines, fmt.Sprintf("and %s: %s", count(len(s.Nodes)-len(shown), "more node"), strings.Join(rest, ", ")))
	}
	lines = append(lines, sentences...)
	if r := whole(s); r != "" {
		lines = append(lines, "All nodes: "+r)
	}
	lines = append(lines, blockers(s, now, worthTelling)...)
	if Stuck(s) {
		lines = append(lines, "", nothingMoves)
	}
	return lines
}

// nothingMoves is said where waiting alone will not do.
const nothingMoves = "Nothing moves until somebody acts on the pods that are blocked, or --timeout or Ctrl-C ends the wait."

// Stuck reports whether no node can go on by itself, and at least one is blocked.
func Stuck(s drain.SetStatus) bool {
	blocked := false
	for _, n := range s.Nodes {
		switch {
		case n.Outcome == drain.OutcomeBlocked:
			blocked = true
		case n.Phase == drain.Pending, n.Phase == drain.Drained, n.Phase == drain.Failed:
		default:
			return false
		}
	}
	return blocked && !s.Done
}

// foremost picks the nodes that are worth a line, those at work first, and counts the others by phase.
func foremost(nodes []drain.Status) (shown []drain.Status, rest []string) {
	if len(nodes) <= maxNodes {
		return nodes, nil
	}
	idle := func(n drain.Status) int {
		switch n.Phase {
		case drain.Pending:
			return 1
		case drain.Drained, drain.Released, drain.HoldEnded:
			return 2
		}
		return 0
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b drain.Status) int { return cmp.Compare(idle(a), idle(b)) })
	counts := map[drain.Phase]int{}
	for _, n := range nodes[maxNodes:] {
		counts[n.Phase]++
	}
	for _, phase := range slices.Sorted(maps.Keys(counts)) {
		rest = append(rest, fmt.Sprintf("%d %s", counts[phase], phase))
	}
	return nodes[:maxNodes], rest
}

// state is the phase of a node, and why it is in it.
func state(n drain.Status) string {
	if n.Reason == "" {
		return string(n.Phase)
	}
	return fmt.Sprintf("%s (%s)", n.Phase, n.Reason)
}

// lasted is how long a node took, or takes so far.
func lasted(n drain.Status, now time.Time) string {
	if !n.Finished.IsZero() {
		now = n.Finished
	}
	return since(n.Started, now)
}

// blockers is a table of the pods that don't leave and are wanted, with the sentence below those that it is about; no line where there
// are none.
func blockers(s drain.SetStatus, now time.Time, wanted func(drain.Blocker) bool) []string {
	type held struct {
		node string
		drain.Blocker
	}
	var list []held
	for _, n := range s.Nodes {
		for _, b := range n.Blockers {
			if wanted(b) {
				list = append(list, held{n.Node, b})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b held) int { return cmp.Compare(urgency(a.Action), urgency(b.Action)) })
	rows := []string{row("POD", "NODE", "ACTION", "REASON", "BUDGET", "FOR", "NEXT")}
	for _, b := range list {
		rows = append(rows, row(b.PodRef.String(), b.node, string(b.Action), string(b.Reason), strings.Join(b.Budgets, ", "), since(b.Since, now),
			next(b.Next, b.NextAt, now)))
	}
	table := columns(rows)
	lines := []string{"", table[0]}
	for i, b := range list {
		lines = append(lines, table[i+1])
		same := i+1 < len(list) && list[i+1].Message == b.Message && list[i+1].Reason == b.Reason
		if b.Message != "" && !same {
			lines = append(lines, "    "+oneLine(advised(b.Message, b.Reason, b.Hook)))
		}
	}
	return lines
}

// urgency puts those first for whom somebody has to act.
func urgency(a drain.Action) int {
	if a == drain.Block {
		return 0
	}
	return 1
}
