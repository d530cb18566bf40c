// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

// A Story is a document with what led to it.
type Story struct {
	Document
	// Fields are those of the config that the next start would use, with their origins.
	Fields []configsync.Field `json:"fields,omitempty"`
	// History is what has happened, the oldest first. A table shows the last entries.
	History []history.Entry `json:"history,omitempty"`
}

// WriteStory prints s in the given format.
func WriteStory(w io.Writer, f Format, s Story) error {
	if f != Table {
		return WriteData(w, f, s)
	}
	if err := writeTable(w, s.Document); err != nil {
		return err
	}
	p := &page{now: s.Time}
	p.fields(s.Fields)
	p.history(s.History)
	_, err := w.Write(p.Bytes())
	return err
}

func (p *page) fields(list []configsync.Field) {
	if len(list) == 0 {
		return
	}
	p.WriteString("\nFields that the config of the next start sets:\n")
	rows := []string{row("  FIELD", "FROM")}
	for _, f := range list {
		rows = append(rows, row("  "+oneLine(f.Path), f.Origin))
	}
	p.columns(rows...)
}

// shownEntries is how many entries of the history a table shows.
const shownEntries = 30

func (p *page) history(list []history.Entry) {
	if len(list) == 0 {
		return
	}
	p.WriteString("\nWhat has happened:\n")
	rows := []string{row("  WHEN", "WHAT", "CONFIG", "WHY")}
	for _, e := range list[max(0, len(list)-shownEntries):] {
		what := string(e.Kind)
		if e.Times > 1 {
			what += fmt.Sprintf(" (%d times, last %s)", e.Times, p.when(e.Last))
		}
		rows = append(rows, row("  "+p.when(e.At), what, e.Config.String(), e.Why))
	}
	p.columns(rows...)
}
