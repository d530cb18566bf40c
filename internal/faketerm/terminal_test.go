// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package faketerm

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// recorder ends the goroutine of a failed test by a panic that a test can catch.
type recorder struct{ testing.TB }

func (r recorder) Helper()                   {}
func (r recorder) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func TestWhatAPersonSees(t *testing.T) {
	for _, c := range []struct{ writes, want string }{
		{"one\ntwo\n", "one\ntwo\n"},
		{"one\ntwo\n\x1b[1A\r\x1b[Jthree\n", "one\nthree\n"},
		{"abcdefghijkl\n", "abcdefghij\nkl\n"},
		{"\x1b[31mred\x1b[0m and éééé\n", "red and éé\néé\n"},
		{"\n", "\n"},
	} {
		m := New(t, 10)
		if _, err := io.WriteString(m, c.writes); err != nil || m.String() != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.writes, m, err, c.want)
		}
	}
}

func TestNarrowerTerminalBreaksItsLines(t *testing.T) {
	m := New(t, 10)
	_, _ = io.WriteString(m, "0123456789\nx\n")
	m.Resize(4)
	if got, want := m.String(), "0123\n4567\n89\nx\n"; got != want || m.Row != 4 {
		t.Errorf("got %q with row %d, want %q with row 4", got, m.Row, want)
	}
}

// A terminal that forgave these would hide that lines are left behind.
func TestWhatCanNotBePlayedFails(t *testing.T) {
	for writes, want := range map[string]string{
		"no end": "without its end", "one\n\x1b[1Atwo\n": "not cleared", "\x1b[2K": "unknown sequence",
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("%q: got %q, want %q in it", writes, got, want)
				}
			}()
			_, _ = io.WriteString(New(recorder{t}, 10), writes)
		}()
	}
}
