// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
)

// Findings is the report of a doctor for people.
func Findings(r doctor.Report) string {
	t := Table{}
	t.Row("CHECK", "LEVEL", "FINDING")
	for _, f := range r.Findings {
		lines := []string{f.What}
		for _, l := range f.Lines {
			lines = append(lines, "   | "+l)
		}
		if f.Remedy != "" {
			lines = append(lines, "-> "+f.Remedy)
		}
		t.Lines([]string{f.Check, strings.ToUpper(string(f.Level))}, lines...)
	}
	end := "Nothing is wrong."
	switch {
	case r.Problems == 1:
		end = "There is 1 problem."
	case r.Problems > 1:
		end = fmt.Sprintf("There are %d problems.", r.Problems)
	case r.Unknown > 0:
		end = "Nothing is known to be wrong."
	}
	if r.Unknown > 0 {
		end += fmt.Sprintf(" Not everything could be looked at: %d.", r.Unknown)
	}
	return t.String() + "\n" + end + "\n"
}
