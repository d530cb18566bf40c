// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
)

// Level is how bad a finding is, as in every doctor.
type Level = doctor.Level

// Finding is the answer of a check, or one of several.
type Finding = doctor.Finding

// Report is what all checks have found, in their order.
type Report = doctor.Report

// Levels.
const (
	OK      = doctor.OK
	Note    = doctor.Note
	Unknown = doctor.Unknown
	Problem = doctor.Problem
)

func finding(check string, l Level, what, remedy string) Finding {
	return Finding{Check: check, Level: l, What: what, Remedy: remedy}
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
	var found []Finding
	for _, check := range []func(*Seen) []Finding{
		definitions, rights, controllers, rollouts, agents, ledgers, slots, budgets,
	} {
		found = append(found, check(s)...)
	}
	return doctor.NewReport(found)
}

// unseen is the finding that a check could not be made as something could not be listed; ok is false then.
func (s *Seen) unseen(check string, kinds ...string) (f []Finding, ok bool) {
	for _, k := range kinds {
		if err := s.Missing[k]; err != nil {
			f = append(f, finding(check, Unknown, fmt.Sprintf("%s can't be listed: %v", k, err), "get the rights of the ClusterRole belay-viewer, see the check rights"))
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
