// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/drain"
)

// A Summary is what is said at the end of a drain.
type Summary struct {
	Status drain.SetStatus
	// Interrupted says that the drain was stopped and everything was given back.
	Interrupted bool
	// Release is the command line by which nodes that are still held are given back.
	Release string
}

// Text is the summary for people. Times are in the zone of now.
func (s Summary) Text(now time.Time) string {
	rows := []string{row("NODE", "RESULT", "EVICTED", "DELETED", "TO LEAVE", "TOOK")}
	for _, n := range s.Status.Nodes {
		rows = append(rows, row(n.Node, s.result(n), number(len(n.Evicted)), number(len(n.Forced)), number(n.Counts.Remaining), lasted(n, now)))
	}
	lines := columns(rows)
	for _, n := range s.Status.Nodes {
		if why := own(n); why != "" && !s.Interrupted {
			lines = append(lines, n.Node+": "+why)
		}
	}
	for _, n := range s.Status.Nodes {
		if stay := describeStaying(n.Counts); stay != "" && n.Phase == drain.Drained {
			lines = append(lines, n.Node+": "+stay)
		}
	}
	if r := whole(s.Status); r != "" {
		lines = append(lines, "All nodes: "+r)
	}
	if s.Interrupted {
		return text(append(lines, s.given()...))
	}
	lines = append(lines, blockers(s.Status, now, func(drain.Blocker) bool { return true })...)
	if held := Held(s.Status); len(held) > 0 && s.Release != "" {
		lines = append(lines, "", fmt.Sprintf("Cordoned: %s. To give back: %s", strings.Join(held, ", "), s.Release))
	}
	return text(lines)
}

// result is the outcome where it stands, and why. What was in the way of a drain is over with an interruption.
func (s Summary) result(n drain.Status) string {
	word := string(n.Outcome)
	if word == "" || n.Phase == drain.Released {
		word = string(n.Phase)
	}
	if untouched(n) {
		word = "Not held"
	}
	if n.Reason != "" && !(s.Interrupted && n.Phase == drain.Released) {
		word += fmt.Sprintf(" (%s)", n.Reason)
	}
	return word
}

// describeStaying says which pods stay on a drained node, and why.
func describeStaying(c drain.Counts) string {
	if c.Skipped == 0 {
		return ""
	}
	var why []string
	for _, part := range []struct {
		pods int
		of   string
	}{
		{c.DaemonSet, "of DaemonSets"}, {c.Static, "static"}, {c.Finished, "finished"},
		{c.Tolerating, "tolerating the cordon or back again"}, {c.ByRule, "by a rule or label"},
	} {
		if part.pods > 0 {
			why = append(why, fmt.Sprintf("%d %s", part.pods, part.of))
		}
	}
	verb := "stay"
	if c.Skipped == 1 {
		verb = "stays"
	}
	return fmt.Sprintf("%s %s: %s", count(c.Skipped, "pod"), verb, strings.Join(why, ", "))
}

// given says what an interrupted drain gave back, and who had left.
func (s Summary) given() []string {
	var released, left []string
	for _, n := range s.Status.Nodes {
		if n.Phase == drain.Released && !n.Started.IsZero() {
			released = append(released, n.Node)
		}
		for _, p := range n.Evicted {
			left = append(left, fmt.Sprintf("  %s from %s", p, n.Node))
		}
	}
	lines := []string{"", "Interrupted before a node was changed."}
	if len(released) > 0 {
		lines[1] = "Interrupted. Given back as found: " + strings.Join(released, ", ")
	}
	if held := Held(s.Status); len(held) > 0 {
		lines = append(lines, fmt.Sprintf("Not given back, and still cordoned: %s. To give back: %s", strings.Join(held, ", "), s.Release))
	}
	if len(left) == 0 {
		return append(lines, "No pod had been evicted.")
	}
	return append(append(lines, fmt.Sprintf("%s had been evicted, and may still be ending:", count(len(left), "pod"))), left...)
}

// Held are the nodes that still carry a mark of the holder.
func Held(s drain.SetStatus) []string {
	var held []string
	for _, n := range s.Nodes {
		if n.Reason == drain.NodeNotFound || n.Reason == drain.NodeReplaced {
			continue
		}
		switch n.Phase {
		case drain.Cordoned, drain.Draining, drain.Paused, drain.Settling, drain.Drained, drain.Holding, drain.HoldEnded:
			held = append(held, n.Node)
		}
	}
	return held
}

// JSON is a status as a document.
func JSON(s drain.SetStatus) (string, error) { return document(s) }
