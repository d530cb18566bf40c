// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"os"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/faketerm"
)

func live(t *testing.T, width, height int) (*Screen, *faketerm.Terminal) {
	m := faketerm.New(t, width)
	return &Screen{out: m, size: func() (int, int) { return m.Width, height }}, m
}

func check(t *testing.T, m *faketerm.Terminal, want string) {
	t.Helper()
	if got := m.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
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
	check(t, m, "first\nsecond\nfrom a log\nc\n")
	s.Draw()
	s.Say("last")
	check(t, m, "first\nsecond\nfrom a log\nlast\n")
}

func TestNothingIsWiderOrHigherThanTheTerminal(t *testing.T) {
	s, m := live(t, 20, 6)
	s.Draw(strings.Repeat("é", 30), "2", "3", "4", "5", "6")
	check(t, m, strings.Repeat("é", 18)+"…\n2\n3\n(3 lines more: mak…\n")
	s.Draw("1", "2", "3", "4")
	check(t, m, "1\n2\n3\n4\n")
}

func TestTheLivePartSurvivesANarrowerTerminal(t *testing.T) {
	s, m := live(t, 80, 24)
	s.Draw(strings.Repeat("x", 60))
	m.Resize(40)
	s.Draw("y")
	check(t, m, "y\n")
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
