// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import "strings"

// wide is the width from which the last column stands beside the others instead of below them.
const wide = 110

// A Cell is a text and how it is meant.
type Cell struct {
	Text string
	Tone Tone
}

// A Row is one line of a table: a cell for each column, and a last text that may be long.
type Row struct {
	Cells []Cell
	Why   Cell
	// Key tells whether the row has changed so that it is worth a line of its own where nothing can be drawn over. Empty: all its text.
	Key string
}

// A Column is a heading and the least width of what stands below it.
type Column struct {
	Heading string
	Width   int
	// Word stands before a cell where there is no heading; empty where the cell speaks for itself.
	Word string
}

// A Layout is what the rows of a table have in common.
type Layout struct {
	Columns []Column
	// Why is the heading of the long last text, Lines how many lines of it are shown at most.
	Why   string
	Lines int
}

const (
	gap    = 2 // between columns
	indent = 4 // of the long text below a row
)

// Table draws rows, none wider than width. Where there is room, the long text is a column of its own; else it stands below its
// row.
func Table(l Layout, rows []Row, width int, p Palette) []string {
	widths := l.widths(rows)
	room := width - sum(widths)
	beside := width >= wide && room > len(l.Why)
	head := make([]Cell, len(l.Columns))
	for i, c := range l.Columns {
		head[i] = Cell{c.Heading, Faint}
	}
	first := line(head, widths, width, p)
	if beside {
		first = first + p.Paint(Faint, l.Why)
	}
	lines := []string{strings.TrimRight(first, " ")}
	for _, r := range rows {
		if beside {
			lines = append(lines, l.besides(r, widths, width, p)...)
		} else {
			lines = append(lines, l.below(r, widths, width, p)...)
		}
	}
	return lines
}

// besides draws a row with its long text in the last column.
func (l Layout) besides(r Row, widths []int, width int, p Palette) []string {
	left := sum(widths)
	why := l.long(r.Why.Text, width-left)
	lines := []string{line(r.Cells, widths, width, p)}
	for i, w := range why {
		if i > 0 {
			lines = append(lines, strings.Repeat(" ", left))
		}
		lines[i] += p.Paint(r.Why.Tone, w)
	}
	return trimmed(lines)
}

// below draws a row with its long text under it.
func (l Layout) below(r Row, widths []int, width int, p Palette) []string {
	lines := []string{line(r.Cells, widths, width, p)}
	for _, w := range l.long(r.Why.Text, width-indent) {
		lines = append(lines, strings.Repeat(" ", indent)+p.Paint(r.Why.Tone, w))
	}
	return trimmed(lines)
}

// long wraps the long text and cuts it off after the lines that it may have.
func (l Layout) long(text string, width int) []string {
	if width < 1 {
		return nil
	}
	lines := Wrap(text, width)
	if len(lines) > l.Lines {
		lines = lines[:l.Lines]
		lines[l.Lines-1] = clip(lines[l.Lines-1]+" …", width)
	}
	return lines
}

// widths gives each column the room that its widest cell needs, the gap after it included.
func (l Layout) widths(rows []Row) []int {
	widths := make([]int, len(l.Columns))
	for i, c := range l.Columns {
		widths[i] = max(c.Width, len([]rune(c.Heading))) + gap
		for _, r := range rows {
			widths[i] = max(widths[i], len([]rune(r.Cells[i].Text))+gap)
		}
	}
	return widths
}

// line draws cells beside each other. What doesn't fit into width is clipped or left out.
func line(cells []Cell, widths []int, width int, p Palette) string {
	var b strings.Builder
	for i, c := range cells {
		if width <= 0 {
			break
		}
		n := min(widths[i], width)
		text := clip(c.Text, n)
		b.WriteString(p.Paint(c.Tone, text))
		b.WriteString(pad("", n-len([]rune(text))))
		width -= n
	}
	return b.String()
}

func trimmed(lines []string) []string {
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func sum(widths []int) int {
	total := 0
	for _, w := range widths {
		total += w
	}
	return total
}
