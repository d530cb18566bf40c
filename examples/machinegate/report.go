// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/belayproject/belay/machine"
)

// Verdicts.
const (
	accepted = "accept"
	warned   = "warn"
	rejected = "reject"
)

// A report is what is said of each machine.
type report struct{ rows map[machine.Key]*row }

// A row is what is said of one machine, as JSON shows it.
type row struct {
	Machine string   `json:"machine"`
	Change  string   `json:"change"`
	Verdict string   `json:"verdict"`
	Reasons []reason `json:"reasons,omitempty"`

	roles []string
}

type reason struct {
	Gate     machine.Gate     `json:"gate"`
	Severity machine.Severity `json:"severity"`
	Message  string           `json:"message"`
}

func (r *report) row(key machine.Key, change string) *row {
	r.rows[key] = &row{Machine: key.String(), Change: change, Verdict: accepted}
	return r.rows[key]
}

func (w *row) add(f machine.Finding) {
	w.Reasons = append(w.Reasons, reason{f.Gate, f.Severity, f.Message})
	switch {
	case f.Severity == machine.Block:
		w.Verdict = rejected
	case w.Verdict == accepted:
		w.Verdict = warned
	}
}

// sorted are the rows by name, with how many there are of each verdict.
func (r *report) sorted() (rows []*row, verdicts map[string]int) {
	verdicts = map[string]int{}
	for _, key := range sortedKeys(r.rows) {
		rows = append(rows, r.rows[key])
		verdicts[r.rows[key].Verdict]++
	}
	return rows, verdicts
}

// write writes the report; errRejected says that something is rejected.
func (r *report) write(out io.Writer, format string) error {
	rows, verdicts := r.sorted()
	var err error
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(map[string]any{"machines": rows})
	} else {
		err = text(out, rows, verdicts)
	}
	if err == nil && verdicts[rejected] > 0 {
		return errRejected
	}
	return err
}

func text(out io.Writer, rows []*row, verdicts map[string]int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MACHINE\tCHANGE\tVERDICT\tREASON") // the error comes with Flush
	for _, row := range rows {
		if len(row.Reasons) == 0 {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t-\n", row.Machine, row.Change, row.Verdict)
		}
		machine, change, verdict := row.Machine, row.Change, row.Verdict
		for _, reason := range row.Reasons {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s: %s\n", machine, change, verdict, reason.Gate, reason.Message)
			machine, change, verdict = "", "", ""
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d accepted, %d warned of, %d rejected\n", verdicts[accepted], verdicts[warned], verdicts[rejected])
	return err
}
