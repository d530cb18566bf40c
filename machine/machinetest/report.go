// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Rule is one promise of a provider.
type Rule struct {
	// Name is stable.
	Name string `json:"rule"`
	// Text is the promise.
	Text string `json:"text"`
}

// An Outcome is how a rule ended.
type Outcome string

// Outcomes of rules.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// A Result is what came out of one rule.
type Result struct {
	Rule
	Outcome Outcome `json:"outcome"`
	// Why is what was wrong, or why the rule was skipped.
	Why string `json:"why,omitempty"`
	// Unchecked are the parts of a rule that could not be checked, and why.
	Unchecked []string `json:"unchecked,omitempty"`
	Seconds   float64  `json:"seconds"`
}

// String returns a failure as "rule NAME: TEXT: WHY", and other results likewise.
func (r Result) String() string {
	if r.Outcome == Failed {
		return fmt.Sprintf("rule %s: %s: %s", r.Name, r.Text, r.Why)
	}
	if r.Why == "" {
		return fmt.Sprintf("rule %s: %s", r.Name, r.Outcome)
	}
	return fmt.Sprintf("rule %s: %s: %s", r.Name, r.Outcome, r.Why)
}

// A Report is what a suite has found.
type Report struct {
	Provider string    `json:"provider"`
	Began    time.Time `json:"began"`
	// Lacks are the abilities and methods that the provider does not have.
	Lacks []string `json:"lacks,omitempty"`
	// Results are those of the rules that were run, in the order of [Rules].
	Results []Result `json:"results"`
}

// Of returns the results with an outcome.
func (r Report) Of(o Outcome) []Result {
	var found []Result
	for _, result := range r.Results {
		if result.Outcome == o {
			found = append(found, result)
		}
	}
	return found
}

// String returns the report for people: a line for each rule.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "provider %q: %d rules passed, %d failed, %d skipped\n", r.Provider, len(r.Of(Passed)), len(r.Of(Failed)), len(r.Of(Skipped)))
	if len(r.Lacks) > 0 {
		fmt.Fprintf(&b, "it lacks: %s\n", strings.Join(r.Lacks, ", "))
	}
	for _, result := range r.Results {
		fmt.Fprintf(&b, "%-7s %-36s %7.3fs", result.Outcome, result.Name, result.Seconds)
		if result.Why != "" {
			fmt.Fprintf(&b, "  %s", result.Why)
		}
		for _, u := range result.Unchecked {
			fmt.Fprintf(&b, "\n        unchecked: %s", u)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Write writes the report to a file, as JSON.
func (r Report) Write(name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write report of provider %q: %w", r.Provider, err)
	}
	if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report of provider %q: %w", r.Provider, err)
	}
	return nil
}
