// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/belayproject/belay/internal/option"
)

// WriteTable writes one line for each row, with its name, whether the node was drained, the evictions that were sent
// and refused, the pods that were deleted without one, the seconds, and what went wrong.
func WriteTable(w io.Writer, rows []Row) error {
	if err := option.CheckRequired("operators.WriteTable", "w", w, "such as os.Stdout"); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "OPERATOR\tDRAINED\tSENT\tREFUSED\tDELETED\tSECONDS\tWRONG"); err != nil {
		return err
	}
	for _, r := range rows {
		drained := "no"
		if r.Drained {
			drained = "yes"
		}
		_, err := fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.1f\t%s\n",
			r.Operator, drained, r.Sent, r.Refused, r.Deleted, r.Took.Seconds(), r.describeFailures())
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// describeFailures returns what went wrong, on one line, or "-".
func (r Row) describeFailures() string {
	wrong := r.Broken
	if r.Err != nil {
		wrong = append([]string{r.Err.Error()}, wrong...)
	}
	if len(wrong) == 0 {
		return "-"
	}
	return strings.Join(strings.Fields(strings.Join(wrong, "; ")), " ")
}
