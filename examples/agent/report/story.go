// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/belayproject/belay/configsync"
)

// A Story is a document with what led to it.
type Story struct {
	Document
	// Fields are those of the config that the next start would use, with their origins.
	Fields []configsync.Field `json:"fields,omitempty"`
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
