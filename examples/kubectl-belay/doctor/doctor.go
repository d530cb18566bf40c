// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"github.com/belayproject/belay/examples/kubectl-belay/page"
	"github.com/belayproject/belay/examples/kubectl-belay/view"
)

// Level is how bad a finding is.
type Level string

// Levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing, and nothing stands because of it
	Unknown Level = "unknown" // it could not be looked at
	Problem Level = "problem" // something does not work, or will not
)

// A Finding is the answer of a check, or one of several.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	What  string `json:"what"`
	// Remedy is what to do. Absent where nothing is to be done.
	Remedy string `json:"remedy,omitempty"`
}

// Report is what all checks have found, in their order.
type Report struct {
	Findings []Finding `json:"findings"`
	Problems int       `json:"problems"`
	Unknown  int       `json:"unknown"`
}

// Seen is what was looked at. Each part comes with the error that kept it from being seen.
type Seen struct {
	view.Seen
	CRDs   []CRD
	Rights []Right
	Leases []Lease
	// Missing are the errors of lists, by what they are of: "Rollouts", "Nodes".
	Missing map[string]error
	// Account is the user name of the controllers.
	Account string
}

// Examine makes all checks.
func Examine(s *Seen) Report {
	r := Report{Findings: []Finding{}}
	for _, check := range []func(*Seen) []Finding{
		definitions, rights, controllers, rollouts, agents, ledgers, slots, budgets,
	} {
		r.Findings = append(r.Findings, check(s)...)
	}
	for _, f := range r.Findings {
		switch f.Level {
		case Problem:
			r.Problems++
		case Unknown:
			r.Unknown++
		}
	}
	return r
}

// Text is the report for people.
func (r Report) Text() string {
	t := page.Table{}
	t.Row("CHECK", "LEVEL", "FINDING")
	for _, f := range r.Findings {
		what := f.What
		if f.Remedy != "" {
			what += "\n-> " + f.Remedy
		}
		t.Row(f.Check, strings.ToUpper(string(f.Level)), what)
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

// unseen is the finding that a check could not be made as something could not be listed; ok is false then.
func (s *Seen) unseen(check string, kinds ...string) (f []Finding, ok bool) {
	for _, k := range kinds {
		if err := s.Missing[k]; err != nil {
			f = append(f, Finding{check, Unknown, fmt.Sprintf("%s can't be listed: %v", k, err), "get the rights of the ClusterRole belay-viewer, see the check rights"})
		}
	}
	return f, len(f) == 0
}

// orOK is the finding that all is well, if there is no other.
func orOK(found []Finding, check, what string) []Finding {
	if len(found) == 0 {
		return []Finding{{Check: check, Level: OK, What: what}}
	}
	return found
}

// named is how many names are listed.
const named = 8

// some names the first ones, and how many there are besides.
func some(names []string) string {
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
