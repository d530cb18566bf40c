// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// What a screen is taken to be where it can't be asked.
const (
	plainWidth  = 100
	plainHeight = 1 << 10

	sentenceWidth = 200 // of a row as one line
)

// A View is what the live part shows.
type View struct {
	Layout Layout
	Rows   []Row
	// Head and Foot are lines above and below the table.
	Head, Foot Cell
}

// A Screen writes sentences, which stay, and below them a live part, which is drawn over. Where it is no terminal, the live
// part is written as one line per row that changed.
type Screen struct {
	out     io.Writer
	size    func() (width, height int)
	live    bool
	palette Palette

	mu    sync.Mutex // guards what follows
	drawn []int      // how many characters each line of the live part on the screen has
	view  View
	said  map[string]string // without a terminal: the last line about each row
	err   error
}

// New returns a Screen on f. It is live if f is a terminal that can move its cursor.
func New(f *os.File, getenv func(string) string) *Screen {
	s := &Screen{out: f, size: func() (int, int) { return plainWidth, plainHeight }, said: map[string]string{}}
	if fd := int(f.Fd()); term.IsTerminal(fd) && getenv("TERM") != "dumb" {
		s.live, s.palette = true, Colours(getenv)
		s.size = func() (int, int) {
			if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
				return w, h
			}
			return 80, 24
		}
	}
	return s
}

// Palette paints for this screen.
func (s *Screen) Palette() Palette { return s.palette }

// Width is how many characters a line may have.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Live reports whether the live part is drawn over.
func (s *Screen) Live() bool { return s.live }

// Say writes lines above the live part. They stay. Lines may hold colours of [Screen.Palette].
func (s *Screen) Say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(lines)
}

// Lines returns a writer whose lines are said. What comes after the last end of a line is lost.
func (s *Screen) Lines() io.Writer { return &lineWriter{screen: s} }

// lineWriter keeps what is not a line yet. It has one user.
type lineWriter struct {
	screen *Screen
	rest   []byte
}

// Write never fails: a screen keeps its own error.
func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, after, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		w.screen.Say(string(line))
		w.rest = after
	}
}

// Update draws the live part anew.
func (s *Screen) Update(v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = v
	if s.live {
		s.write(nil)
		return
	}
	s.write(s.changes(v))
}

// Settle leaves the live part, as it was drawn last, as sentences. Without a terminal it writes the whole table once.
func (s *Screen) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live && len(s.view.Rows) > 0 {
		s.write(Table(s.view.Layout, s.view.Rows, plainWidth, s.palette))
	}
	s.view, s.drawn, s.said = View{}, nil, map[string]string{}
}

// Err returns the first error of the output. After it nothing more is written.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// changes returns one line for each row that has changed since it was last written.
func (s *Screen) changes(v View) []string {
	var lines []string
	for _, r := range v.Rows {
		text := v.Layout.sentence(r)
		key := r.Key
		if key == "" {
			key = text
		}
		if name := r.Cells[0].Text; s.said[name] != key {
			s.said[name] = key
			lines = append(lines, "  "+text)
		}
	}
	return lines
}

// sentence is a row as one line, with a word before what doesn't speak for itself.
func (l Layout) sentence(r Row) string {
	var parts []string
	for i, c := range r.Cells {
		switch {
		case c.Text == "":
		case l.Columns[i].Word != "":
			parts = append(parts, l.Columns[i].Word+" "+c.Text)
		default:
			parts = append(parts, c.Text)
		}
	}
	if r.Why.Text != "" {
		parts = append(parts, r.Why.Text)
	}
	return clip(strings.Join(parts, ", "), sentenceWidth)
}

// write puts lines where the live part stands, and the live part below them, in one write so that it doesn't flicker. The caller
// holds mu.
func (s *Screen) write(lines []string) {
	if s.err != nil {
		return
	}
	var b bytes.Buffer
	width, height := s.size()
	if up := rows(s.drawn, width); s.live && up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", up)
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	s.drawn = nil
	if s.live {
		for _, l := range s.view.lines(width, height, s.palette) {
			b.WriteString(l + "\n")
			s.drawn = append(s.drawn, visible(l))
		}
	}
	if _, err := s.out.Write(b.Bytes()); err != nil {
		s.err = fmt.Errorf("writing to the terminal: %w", err)
	}
}

// lines draws the view. It leaves out rows at the end rather than become higher than the terminal.
func (v View) lines(width, height int, p Palette) []string {
	if len(v.Rows) == 0 {
		return nil
	}
	width-- // a terminal may wrap after its last column
	var lines []string
	if v.Head.Text != "" {
		lines = append(lines, p.Paint(v.Head.Tone, clip(v.Head.Text, width)))
	}
	table := Table(v.Layout, v.Rows, width, p)
	if room := height - 4; len(table) > room && room > 0 {
		table = append(table[:room], fmt.Sprintf("(%d lines more: make the window higher)", len(table)-room))
	}
	lines = append(lines, table...)
	if v.Foot.Text != "" {
		lines = append(lines, p.Paint(v.Foot.Tone, clip(v.Foot.Text, width)))
	}
	return lines
}

// rows is how many lines of the terminal the drawn ones take, now that it may have become narrower.
func rows(drawn []int, width int) int {
	n := 0
	for _, length := range drawn {
		n += max(1, (length+width-1)/width)
	}
	return n
}

// visible counts the characters of a line that take room.
func visible(line string) int {
	n := utf8.RuneCountInString(line)
	for rest := line; ; {
		i := strings.Index(rest, "\x1b[")
		if i < 0 {
			return n
		}
		rest = rest[i:]
		end := strings.IndexByte(rest, 'm') + 1
		n -= end
		rest = rest[end:]
	}
}
