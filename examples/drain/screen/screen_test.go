// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// terminal plays a terminal: it keeps the lines that a person would see, of those that were written to it.
type terminal struct {
	t     *testing.T
	width int
	lines []string
	row   int
}

// Write understands new lines, "up n lines", "to the first column" and "clear what is below".
func (m *terminal) Write(b []byte) (int, error) {
	for rest := string(b); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexFunc(rest[2:], func(r rune) bool { return r >= '@' }) + 2
			n, _ := strconv.Atoi(rest[2:end])
			switch rest[end] {
			case 'A':
				m.row -= n
			case 'J':
				m.lines = m.lines[:m.row]
			default:
				m.t.Fatalf("unknown sequence %q", rest[:end+1])
			}
			rest = rest[end+1:]
		case rest[0] == '\r':
			rest = rest[1:]
		default:
			line, after, found := strings.Cut(rest, "\n")
			if !found || m.row != len(m.lines) {
				m.t.Fatalf("%q is no whole line, or written over line %d of %d", line, m.row, len(m.lines))
			}
			runes := []rune(line)
			for len(runes) > m.width { // wrap as a terminal does
				m.lines, runes = append(m.lines, string(runes[:m.width])), runes[m.width:]
			}
			m.lines = append(m.lines, string(runes))
			m.row, rest = len(m.lines), after
		}
	}
	return len(b), nil
}

func (m *terminal) check(want string) {
	m.t.Helper()
	if got := strings.Join(m.lines, "\n") + "\n"; got != want {
		m.t.Errorf("got\n%swant\n%s", got, want)
	}
}

func live(t *testing.T, width, height int) (*Screen, *terminal) {
	m := &terminal{width: width, t: t}
	return &Screen{out: m, size: func() (int, int) { return m.width, height }}, m
}

func TestTheLivePartStaysBelowWhatIsSaid(t *testing.T) {
	s, m := live(t, 80, 24)
	s.Say("first")
	s.Draw("a", "b")
	s.Draw("c")
	s.Say("second")
	if _, err := s.Write([]byte("from a log\n")); err != nil {
		t.Fatal(err)
	}
	m.check("first\nsecond\nfrom a log\nc\n")
	s.Draw()
	s.Say("last")
	m.check("first\nsecond\nfrom a log\nlast\n")
}

func TestNothingIsWiderOrHigherThanTheTerminal(t *testing.T) {
	s, m := live(t, 20, 6)
	s.Draw(strings.Repeat("é", 30), "2", "3", "4", "5", "6")
	m.check(strings.Repeat("é", 18) + "…\n2\n3\n(3 lines more: mak…\n")
	s.Draw("1", "2", "3", "4")
	m.check("1\n2\n3\n4\n")
}

func TestTheLivePartSurvivesANarrowerTerminal(t *testing.T) {
	s, m := live(t, 80, 24)
	s.Draw(strings.Repeat("x", 60))
	m.width = 40
	m.lines = []string{strings.Repeat("x", 40), strings.Repeat("x", 20)} // a terminal wraps what is there
	m.row = 2
	s.Draw("y")
	m.check("y\n")
}

func TestAFileGetsOnlyWhatIsSaid(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := New(f, func(string) string { return "" })
	s.Say("one", "two")
	s.Draw("drawn")
	s.Say("three")
	got, err := os.ReadFile(f.Name())
	if err != nil || string(got) != "one\ntwo\nthree\n" || s.Live() {
		t.Errorf("got %q, %v, live %v; want the lines that were said", got, err, s.Live())
	}
}
