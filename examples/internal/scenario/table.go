// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/screen"
	"github.com/belayproject/belay/rollout"
)

// Layout is that of the live table.
func Layout() screen.Layout {
	return screen.Layout{
		Columns: []screen.Column{
			{Heading: "ROLLOUT", Width: 7}, {Heading: "PHASE", Width: 9}, {Heading: "STAGE", Width: 12, Word: "stage"}, {Heading: "DONE", Width: 9, Word: "done"},
			{Heading: "AWAY", Word: "away"}, {Heading: "BROKEN", Word: "broken"}, {Heading: "FOR"},
		},
		Why: "NODES", Lines: 60,
	}
}

// Row shows how far an act is. fleet is a map of the nodes; empty where none is shown.
func (a Act) Row(s Seen, took time.Duration, fleet string) screen.Row {
	phase, stage, done := rollout.Phase("-"), "-", "-"
	if st := s.Status; st != nil {
		phase, done = cmp.Or(rollout.Phase(st.Phase), phase), cmp.Or(st.Done, done)
		if st.Stage != nil {
			stage = fmt.Sprintf("%d/%d %s", st.Stage.Number, st.Stage.Of, st.Stage.Name)
		}
	}
	tone := screen.Pending
	switch phase {
	case rollout.Completed:
		tone = screen.Good
	case rollout.Frozen:
		tone = screen.Bad
	}
	broken := screen.Cell{Text: s.broken()}
	if s.Crashed > 0 {
		broken.Tone = screen.Bad
	}
	return screen.Row{
		Cells: []screen.Cell{
			{Text: a.Name, Tone: screen.Strong}, {Text: string(phase), Tone: tone}, {Text: stage}, {Text: done},
			{Text: fmt.Sprintf("%d of %d", s.Away, s.Cap)}, broken, {Text: took.Round(time.Second).String(), Tone: screen.Faint},
		},
		Why: screen.Cell{Text: fleet},
		Key: fmt.Sprintln(a.Title(), phase, stage, s.tenths(), s.Crashed > 0, s.Bound),
	}
}

// broken is how many nodes were, and how many could be.
func (s Seen) broken() string {
	if s.Bound < 0 {
		return fmt.Sprint(s.Crashed)
	}
	return fmt.Sprintf("%d, bound %d", s.Crashed, s.Bound)
}

// tenths is how many tenths of the nodes are done.
func (s Seen) tenths() int64 {
	if s.Status == nil || s.Status.Counts == nil || s.Status.Counts.Selected == 0 {
		return 0
	}
	return s.Status.Counts.Done * 10 / s.Status.Counts.Selected
}

// The signs of the map.
const (
	SignBefore = '.'
	SignDone   = '#'
	SignAway   = 'o'
	SignDown   = 'x'

	legend = ". not yet  o away  # has it  x down"
	// block is how many nodes a word of the map has, so that lines can be broken.
	block = 50
)

// Map has a sign for each node. sign says which.
func Map(nodes []string, sign func(node string) rune) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 && i%block == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(sign(n))
	}
	return b.String()
}
