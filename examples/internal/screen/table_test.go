// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/faketerm"
	"github.com/belayproject/belay/internal/golden"
)

func example() (Layout, []Row) {
	l := Layout{
		Columns: []Column{{Heading: "NODE", Width: 12}, {Heading: "STATE", Width: 21}, {Heading: "CONFIGOK"}},
		Why:     "WHY", Lines: 2,
	}
	return l, []Row{
		{Cells: []Cell{{"belay-demo-1", Strong}, {"promoted", Good}, {"True", Good}}, Why: Cell{"all checks passed", Faint}},
		{
			Cells: []Cell{{"belay-demo-2", Strong}, {"rolled back from v4", Bad}, {"False", Bad}},
			Why: Cell{"using last known good: (UID: 8c1f0e5e…): failed to run current (UID: 0d9fcb4a…), crash loop: " +
				"3 unexplained restarts, tolerated: 2", Faint},
		},
		{Cells: []Cell{{"belay-demo-3", Strong}, {"", Plain}, {"-", Faint}}},
		{
			Cells: []Cell{{"belay-demo-4", Strong}, {"on trial 2s of 4s", Pending}, {"Unknown", Pending}},
			Why:   Cell{"no report: " + strings.Repeat("a-very-long-word", 20), Faint},
		},
	}
}

func TestTableFitsItsWidth(t *testing.T) {
	l, rows := example()
	for _, width := range []int{1, 7, 20, 40, 79, 80, 100, 109, 110, 120, 200} {
		for i, line := range Table(l, rows, width, Palette{}) {
			if n := visible(line); n > width {
				t.Errorf("width %d, line %d: %d characters; a line that wraps can't be drawn over: %q", width, i, n, line)
			}
		}
	}
}

func TestTableGolden(t *testing.T) {
	l, rows := example()
	for _, width := range []int{80, 120} {
		golden.Check(t, fmt.Sprintf("table-%d.golden", width), strings.Join(Table(l, rows, width, Palette{}), "\n")+"\n")
	}
	coloured := strings.Join(Table(l, rows, 80, Palette{on: true}), "\n") + "\n"
	golden.Check(t, "table-80-colour.golden", strings.ReplaceAll(coloured, "\x1b", "ESC"))
}

func TestColoursChangeNothingButColours(t *testing.T) {
	l, rows := example()
	for _, width := range []int{80, 120} {
		plain, coloured := Table(l, rows, width, Palette{}), Table(l, rows, width, Palette{on: true})
		for i := range plain {
			if visible(coloured[i]) < visible(plain[i]) || strings.TrimRight(faketerm.Plain(coloured[i]), " ") != plain[i] {
				t.Errorf("width %d, line %d: got %q with colours, %q without", width, i, coloured[i], plain[i])
			}
		}
	}
}

func TestColours(t *testing.T) {
	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"0", "xterm", false}, {"", "dumb", false}} {
		env := map[string]string{"NO_COLOR": c.noColour, "TERM": c.term}
		if got := Colours(func(k string) string { return env[k] }).on; got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: got colours %v, want %v", c.noColour, c.term, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one", 10, "one"},
		{"one two three", 7, "one two|three"},
		{"one two three", 6, "one|two|three"},
		{"abcdefgh ij", 3, "abc|def|gh|ij"},
		{"  spaces   between ", 20, "spaces between"},
		{"é é é", 3, "é é|é"},
	} {
		if got := strings.Join(Wrap(c.text, c.width), "|"); got != c.want {
			t.Errorf("Wrap(%q, %d): got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
