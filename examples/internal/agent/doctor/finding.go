// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

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
	// Lines are the last ones of a program, for people.
	Lines []string `json:"lines,omitempty"`
	// Remedy is what to do. Absent where nothing is to be done.
	Remedy string `json:"remedy,omitempty"`
}

// A Report is what all checks have found, in their order.
type Report struct {
	Findings []Finding `json:"findings"`
	Problems int       `json:"problems"`
	Unknown  int       `json:"unknown"`
}

// NewReport counts. It keeps found.
func NewReport(found []Finding) Report {
	r := Report{Findings: found}
	if found == nil {
		r.Findings = []Finding{}
	}
	for _, f := range found {
		switch f.Level {
		case Problem:
			r.Problems++
		case Unknown:
			r.Unknown++
		}
	}
	return r
}
