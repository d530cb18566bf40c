// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Screen is an output, which may be a terminal. What can't be written is lost: nobody drains less for it.
type Screen struct {
	out  interface{ Write([]byte) (int, error) }
	size func() (width, height int) // nil where it is no terminal

	mu    sync.Mutex // guards what follows
	lines []string   // of the part that is drawn over
	drawn []int      // how many characters each of them has on the screen
}

// New returns a Screen on f. It is live if f is a terminal that can move its cursor.
func New(f *os.File, getenv func(string) string) *Screen {
	s := &Screen{out: f}
	if fd := int(f.Fd()); term.IsTerminal(fd) && getenv("TERM") != "dumb" {
		s.size = func() (int, int) {
			if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
				return w, h
			}
			return 80, 24
		}
	}
	return s
}

// Live reports whether there is a part that is drawn over.
func (s *Screen) Live() bool { return s.size != nil }

// Say writes lines above that part. They stay.
func (s *Screen) Say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(lines)
}

// Draw draws the part anew; without lines it is taken away. Where the screen isn't live, nothing happens.
func (s *Screen) Draw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != nil {
		s.lines = lines
		s.write(nil)
	}
}

// Write lets whole lines of others, such as a log, be said. It never fails.
func (s *Screen) Write(b []byte) (int, error) {
	s.Say(string(bytes.TrimSuffix(b, []byte("\n"))))
	return len(b), nil
}

// write puts lines where the live part stands, and the live part below them, in one write so that it doesn't flicker. The caller
// holds mu.
func (s *Screen) write(said []string) {
	var b bytes.Buffer
	if s.size == nil {
		for _, l := range said {
			b.WriteString(l + "\n")
		}
		_, _ = s.out.Write(b.Bytes())
		return
	}
	width, height := s.size()
	if up := rows(s.drawn, width); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", up)
	}
	for _, l := range said {
		b.WriteString(l + "\n")
	}
	s.drawn = nil
	for _, l := range fit(s.lines, width-1, height-2) { // a terminal may wrap after its last column
		b.WriteString(l + "\n")
		s.drawn = append(s.drawn, utf8.RuneCountInString(l))
	}
	_, _ = s.out.Write(b.Bytes())
}

// fit clips lines to the width, and leaves out those at the end for which there is no room, saying how many.
func fit(lines []string, width, height int) []string {
	height = max(height, 2)
	var fitting []string
	for i, l := range lines {
		if len(lines) > height && i == height-1 {
			return append(fitting, clip(fmt.Sprintf("(%d lines more: make the window higher)", len(lines)-i), width))
		}
		fitting = append(fitting, clip(l, width))
	}
	return fitting
}

// clip shortens text to width characters, with an ellipsis where something is left out.
func clip(text string, width int) string {
	switch {
	case utf8.RuneCountInString(text) <= width:
		return text
	case width < 1:
		return ""
	default:
		return string([]rune(text)[:width-1]) + "…"
	}
}

// rows is how many lines of the terminal the drawn ones take, now that it may have become narrower.
func rows(drawn []int, width int) int {
	n := 0
	for _, length := range drawn {
		n += max(1, (length+width-1)/width)
	}
	return n
}
