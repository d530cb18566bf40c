// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package faketerm

import (
	"strconv"
	"strings"
	"testing"
)

// A Terminal keeps the lines that a person would see, of those that were written to it. It has no colours, and no end at the bottom.
type Terminal struct {
	// Width is how many characters fit on a line. More are on the next one.
	Width int
	// Lines are those on the screen.
	Lines []string
	// Row is the line that is written next, counted from 0.
	Row int

	t testing.TB
}

// New makes an empty one. What it can't play fails the test.
func New(t testing.TB, width int) *Terminal { return &Terminal{Width: width, t: t} }

// Write understands whole lines, "up n lines", "to the first column", "clear what is below", and colours.
func (m *Terminal) Write(b []byte) (int, error) {
	m.t.Helper()
	for rest := string(b); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			rest = m.sequence(rest)
		case rest[0] == '\r':
			rest = rest[1:]
		default:
			line, after, found := strings.Cut(rest, "\n")
			if !found {
				m.t.Fatalf("a line without its end: %q", rest)
			}
			if m.Row != len(m.Lines) {
				m.t.Fatalf("%q is written over what is not cleared, in line %d of %d", line, m.Row, len(m.Lines))
			}
			m.Lines = append(m.Lines, m.wrapped(line)...)
			m.Row, rest = len(m.Lines), after
		}
	}
	return len(b), nil
}

// sequence obeys the control sequence at the start of a text, and returns what is behind it.
func (m *Terminal) sequence(text string) string {
	m.t.Helper()
	end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' }) + 2
	n, _ := strconv.Atoi(text[2:end])
	switch text[end] {
	case 'A':
		m.Row -= n
	case 'J':
		m.Lines = m.Lines[:m.Row]
	case 'm':
	default:
		m.t.Fatalf("unknown sequence %q", text[:end+1])
	}
	return text[end+1:]
}

// wrapped breaks a line as a terminal does.
func (m *Terminal) wrapped(line string) []string {
	runes := []rune(Plain(line))
	var lines []string
	for len(runes) > m.Width {
		lines, runes = append(lines, string(runes[:m.Width])), runes[m.Width:]
	}
	return append(lines, string(runes))
}

// Resize makes the terminal narrower or wider: what is on it is broken anew.
func (m *Terminal) Resize(width int) {
	before := m.Lines
	m.Width, m.Lines = width, nil
	for _, line := range before {
		m.Lines = append(m.Lines, m.wrapped(line)...)
	}
	m.Row = len(m.Lines)
}

// String is what a person sees.
func (m *Terminal) String() string { return strings.Join(m.Lines, "\n") + "\n" }

// Plain is a text without its colours.
func Plain(text string) string {
	for {
		before, after, ok := strings.Cut(text, "\x1b[")
		if !ok {
			return text
		}
		_, after, _ = strings.Cut(after, "m")
		text = before + after
	}
}
