// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	// Width is that of a page in columns.
	Width = 120
	// widest is the widest a column may be that is not the last one; longer cells are cut.
	widest = 44
	// least is how much is left for the last column at least, however wide the others are.
	least = 24
	gap   = 2
)

// A Table is rows whose last cells are wrapped at the edge of the page. The zero Table is empty. What cells hold can come from anybody: it is shown by
// [Clean], so that nothing in it acts on a terminal or begins a line.
type Table struct {
	// Indent is how many columns stay empty on the left.
	Indent int
	rows   []row
}

// row is the cells of a row but the last one, and the lines of that.
type row struct{ cells, last []string }

// Row adds a row. Its last cell is one line, however long.
func (t *Table) Row(cells ...string) {
	n := len(cells) - 1
	t.Lines(cells[:n], cells[n])
}

// Lines adds a row whose last cell has several lines, each of which begins anew.
func (t *Table) Lines(cells []string, last ...string) {
	r := row{last: last}
	for _, c := range cells {
		r.cells = append(r.cells, Clean(c))
	}
	t.rows = append(t.rows, r)
}

// Fact adds a row of two, unless there is nothing to say.
func (t *Table) Fact(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// Facts adds a row of two with several lines, unless there is nothing to say.
func (t *Table) Facts(name string, lines []string) {
	if len(lines) > 0 {
		t.Lines([]string{name}, lines...)
	}
}

// Factf is Fact with a format.
func (t *Table) Factf(name, format string, args ...any) { t.Fact(name, fmt.Sprintf(format, args...)) }

// String lays the table out.
func (t *Table) String() string {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(strings.Repeat(" ", t.Indent))
		for i, cell := range row.cells {
			cell = Cut(cell, widest)
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		start := utf8.RuneCountInString(line.String())
		for i, part := range Wrap(max(least, Width-start), row.last...) {
			if i > 0 {
				line.Reset()
				line.WriteString(strings.Repeat(" ", start))
			}
			line.WriteString(part)
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
	return b.String()
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(widest, utf8.RuneCountInString(cell)))
		}
	}
	return widths
}

// Cut shortens a text that is too wide.
func Cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// Clean is a text that can't act on a terminal: what is not printed stands as a question mark, and each break and tab as a blank. So one text stays one line, and
// nobody who writes it can move the cursor, hide a part of it, or turn it around.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '?'
	}, text)
}

// Wrap breaks each text into lines at blanks, and words that are too wide anywhere. There is always a line for each. They are shown by [Clean].
func Wrap(width int, texts ...string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, wrapLine(Clean(text), width)...)
	}
	return lines
}

func wrapLine(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
		for utf8.RuneCountInString(line) > width {
			runes := []rune(line)
			lines, line = append(lines, string(runes[:width])), string(runes[width:])
		}
	}
	return append(lines, line)
}

// Ago is a time and how long ago it was, or in how long it is; empty for none.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	text := t.UTC().Format("2006-01-02 15:04:05Z")
	if d := now.Sub(t); d >= 0 {
		return text + " (" + duration.HumanDuration(d) + " ago)"
	}
	return text + " (in " + duration.HumanDuration(t.Sub(now)) + ")"
}

// Took is a duration for people; a dash for none.
func Took(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return duration.HumanDuration(d)
}

// Bar shows how far something is.
func Bar(done, of int64, width int) string {
	full := 0
	if of > 0 {
		full = int(min(done, of) * int64(width) / of)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// Nodes is a number of nodes in words.
func Nodes(n int64) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
