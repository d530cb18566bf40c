// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/rollout/internal/model"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-14: the page on the protocol is made from its table.
func TestThePageIsTheTable(t *testing.T) {
	golden.Check(t, "../../../../docs/rollout-protocol.md", page())
}

func page() string {
	var b strings.Builder
	b.WriteString(`# How a rollout disrupts a node

This page is made from the table in package ` + "`rollout/internal/model`" + `
(` + "`UPDATE_GOLDEN=1 go test ./rollout/internal/model`" + `),
which the tests walk: every pair of a state and an event is either in it, or is refused.

The way of one attempt; what goes wrong, retries and the loss of shadows are in the table below.

` + "```mermaid\nstateDiagram-v2\n")
	b.WriteString("    [*] --> Resting\n")
	for _, line := range diagram() {
		b.WriteString("    " + line + "\n")
	}
	b.WriteString("```\n\n## All transitions\n\n| from | event | to | who | writes | if |\n|---|---|---|---|---|---|\n")
	for _, r := range rows() {
		b.WriteString(r + "\n")
	}
	return b.String()
}

// shown are the events of the diagram.
func shown() []protocol.Event {
	return []protocol.Event{
		protocol.EventStaged, protocol.EventAdmit, protocol.EventGrant, protocol.EventRevoke, protocol.EventCommit,
		protocol.EventRefuse, protocol.EventProceed, protocol.EventUndo, protocol.EventUndone, protocol.EventApply,
		protocol.EventApplied, protocol.EventFellBack,
		protocol.EventBroke, protocol.EventVerified, protocol.EventRelease,
	}
}

func diagram() (lines []string) {
	for _, tr := range model.AllTransitions() {
		if tr.From == protocol.Retrying || tr.From == protocol.Lost || !slices.Contains(shown(), tr.Event) {
			continue
		}
		for _, to := range tr.To {
			if to != tr.From && (tr.Event != protocol.EventRelease || to == protocol.Resting) {
				lines = append(lines, fmt.Sprintf("%s --> %s: %s", tr.From, to, tr.Event))
			}
		}
	}
	return lines
}

// rows are the lines of the table, those that differ in the state alone in one.
func rows() (lines []string) {
	all := model.AllTransitions()
	for i := 0; i < len(all); {
		tr, from := all[i], []protocol.State{}
		same := slices.Equal(tr.To, []protocol.State{tr.From})
		for ; i < len(all) && all[i].Event == tr.Event && all[i].Guard == tr.Guard; i++ {
			if slices.Equal(all[i].To, []protocol.State{all[i].From}) != same || !same && !slices.Equal(all[i].To, tr.To) {
				break
			}
			from = append(from, all[i].From)
		}
		to := names(tr.To)
		if same {
			to = "the same"
		}
		cells := []string{names(from), string(tr.Event), to, string(tr.Writer), tr.Writes, tr.Guard}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return lines
}

func names(states []protocol.State) string {
	out := make([]string, 0, len(states))
	for _, s := range states {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}
