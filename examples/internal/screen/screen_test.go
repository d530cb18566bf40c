// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/faketerm"
)

func live(t *testing.T, width, height int) (*Screen, *faketerm.Terminal) {
	m := faketerm.New(t, width)
	return &Screen{out: m, live: true, said: map[string]string{}, size: func() (int, int) { return width, height }}, m
}

func view(states ...string) View {
	v := View{Layout: Layout{Columns: []Column{{Heading: "NODE"}, {Heading: "STATE"}}, Why: "WHY", Lines: 1}, Foot: Cell{Text: "foot"}}
	for i, s := range states {
		v.Rows = append(v.Rows, Row{Cells: []Cell{{Text: "n" + strconv.Itoa(i+1)}, {Text: s}}})
	}
	return v
}

func TestLivePartStaysBelowWhatIsSaid(t *testing.T) {
	s, m := live(t, 80, 24)
	s.Say("first")
	s.Update(view("a", "b"))
	s.Update(view("c", "b"))
	s.Say("second")
	s.Update(view("d"))
	if got, want := m.String(), "first\nsecond\nNODE  STATE\nn1    d\nfoot\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	s.Settle()
	s.Say("third")
	if got, want := m.String(), "first\nsecond\nNODE  STATE\nn1    d\nfoot\nthird\n"; got != want {
		t.Errorf("after Settle: got\n%swant\n%s", got, want)
	}
}

func TestLinesOfOthersStayAboveTheLivePart(t *testing.T) {
	s, m := live(t, 80, 24)
	w := s.Lines()
	s.Update(view("a"))
	for _, part := range []string{"build", "ing\ndone\nand ", "mo", "re"} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.String(), "building\ndone\nNODE  STATE\nn1    a\nfoot\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLivePartNeverFillsTheTerminal(t *testing.T) {
	s, m := live(t, 80, 10)
	s.Update(view(strings.Split(strings.Repeat("x", 30), "")...))
	s.Update(view(strings.Split(strings.Repeat("y", 30), "")...))
	if len(m.Lines) >= 10 {
		t.Errorf("got %d lines on a terminal of 10: what scrolled away can't be drawn over", len(m.Lines))
	}
	if !strings.Contains(m.String(), "(25 lines more: make the window higher)") || strings.Contains(m.String(), "x") {
		t.Errorf("got\n%s", m)
	}
}

func TestLivePartSurvivesANarrowerTerminal(t *testing.T) {
	m := faketerm.New(t, 80)
	width := 80
	s := &Screen{out: m, live: true, said: map[string]string{}, size: func() (int, int) { return width, 24 }}
	s.Say("above")
	v := view(strings.Repeat("s", 60))
	s.Update(v)
	width = 40
	m.Resize(width)
	s.Update(view("done"))
	if got, want := m.String(), "above\nNODE  STATE\nn1    done\nfoot\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWithoutATerminalOnlyChangesAreWritten(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := New(f, func(string) string { return "" })
	if s.Live() || s.Palette() != (Palette{}) {
		t.Errorf("a file: got live %v, palette %v; want neither", s.Live(), s.Palette())
	}
	for _, v := range []View{view("a", "b"), view("a", "b"), view("a", "c"), view("a", "b")} {
		s.Update(v)
	}
	s.Settle()
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	want := "  n1, a\n  n2, b\n  n2, c\n  n2, b\nNODE  STATE\nn1    a\nn2    b\n"
	if string(got) != want || bytes.Contains(got, []byte("\x1b")) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, io.ErrClosedPipe
}

func TestBrokenOutputIsReportedOnce(t *testing.T) {
	b := &broken{}
	s := &Screen{out: b, said: map[string]string{}, size: func() (int, int) { return 80, 24 }}
	s.Say("one")
	s.Say("two")
	if err := s.Err(); !errors.Is(err, io.ErrClosedPipe) || b.writes != 1 {
		t.Errorf("got error %v after %d writes, want %v after 1", err, b.writes, io.ErrClosedPipe)
	}
}
