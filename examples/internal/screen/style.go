// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"unicode/utf8"
)

// A Tone says how a piece of text is meant. It becomes a colour where there are colours, and is nowhere the only sign.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Bad
	Pending
	Faint
	Strong
)

// sgr are the terminal's codes for the tones.
func (t Tone) sgr() string {
	switch t {
	case Good:
		return "32"
	case Bad:
		return "31"
	case Pending:
		return "33"
	case Faint:
		return "2"
	case Strong:
		return "1"
	default:
		return ""
	}
}

// A Palette paints text. The zero value leaves it as it is.
type Palette struct{ on bool }

// Colours returns the palette that an environment asks for: none where NO_COLOR is set to anything, or the terminal is dumb.
func Colours(getenv func(string) string) Palette {
	return Palette{on: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Paint gives text a tone.
func (p Palette) Paint(t Tone, text string) string {
	if code := t.sgr(); p.on && code != "" && text != "" {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

// clip shortens text to width characters, with an ellipsis where something is left out.
func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width <= 1 {
		return strings.Repeat("…", max(width, 0))
	}
	return string([]rune(text)[:width-1]) + "…"
}

// pad fills text up to width characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

// Wrap breaks text between words into lines of at most width characters, and a longer word where it must.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for r := []rune(line); len(r) > width && width > 0; r = []rune(line) {
			lines, line = append(lines, string(r[:width])), string(r[width:])
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
