// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
)

// No line is wider than the page, no word is lost in the last column, and columns stand under each other, whatever the cells are.
func TestTableFitsThePage(t *testing.T) {
	long := strings.Repeat("näme ", 60) + strings.Repeat("x", 300)
	table := page.Table{Indent: 2}
	table.Row("NODE", "STATE", "MESSAGE")
	table.Row("a", "b", long)
	table.Row(strings.Repeat("n", 253), strings.Repeat("s", 253), "short")
	table.Row("", "", "")
	text := table.String()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > page.Width {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
	for _, mark := range []string{"n", "x"} {
		if mark == "x" && strings.Count(text, mark) != 300 {
			t.Errorf("%d of 300 letters of a long word are left", strings.Count(text, mark))
		}
	}
	if strings.Count(text, "näme") != 60 {
		t.Errorf("%d of 60 words are left", strings.Count(text, "näme"))
	}
	first, _, _ := strings.Cut(text, "\n")
	if at := strings.Index(first, "MESSAGE"); !strings.Contains(text, "\n"+strings.Repeat(" ", at)+"xxx") {
		t.Errorf("what is wrapped does not stand under its head:\n%s", text)
	}
}

// S-CS-11: what others wrote can't move the cursor, clear the screen, turn text around, or fake a line or a column.
func TestTableHoldsNoControlCharacters(t *testing.T) {
	hostile := "a\n\x1b[2J\tb\u009b1mc\u202ed\u2028e\x7f\r\x00\xff\u200bf"
	table := page.Table{}
	table.Row("NODE", "MESSAGE")
	table.Row(hostile, hostile)
	table.Lines([]string{hostile}, hostile, "ours")
	text := table.String() + strings.Join(page.Wrap(page.Width, hostile), "|")
	const clean = "a ?[2J b?1mc?d e? ?\ufffd?f"
	if got, want := strings.Count(text, "\n"), 4; got != want {
		t.Errorf("there are %d lines, want %d:\n%s", got, want, text)
	}
	if got, want := strings.Count(text, clean), 5; got != want {
		t.Errorf("%q is there %d times, want %d:\n%q", clean, got, want, text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the text holds %q", r)
		}
	}
}

// Times and progress are as people say them.
func TestWords(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for got, want := range map[string]string{
		page.Ago(now.Add(-time.Minute), now):     "2026-03-04 11:59:00Z (60s ago)",
		page.Ago(now.Add(3*time.Hour), now):      "2026-03-04 15:00:00Z (in 3h)",
		page.Ago(time.Time{}, now):               "",
		page.Bar(0, 0, 4):                        "[....]",
		page.Bar(1, 2, 4):                        "[##..]",
		page.Bar(9, 2, 4):                        "[####]",
		page.Nodes(1) + page.Nodes(2):            "1 node2 nodes",
		page.Cut("abc", 3) + page.Cut("abcd", 3): "abcab…",
		page.Took(0) + page.Took(time.Hour):      "-60m",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
