// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "time"

// MaxElapsed is the most that one health report can add. What lies further back was not observed: the machine may
// have been suspended, or reports were missed. Report more often than this.
const MaxElapsed = time.Minute

// A ProbeResult is the answer of one probe.
type ProbeResult struct {
	Name     string
	Required bool  // a wanted probe is only shown; a required one decides
	Err      error // nil: it passes
}

// Health is one report about the run since the last [Tracker.Start].
type Health struct {
	// Elapsed is the monotonic time since the previous report of this run, or since the start for the first. It is
	// counted up to MaxElapsed. Never compute it from the wall clock or from another process's readings.
	Elapsed time.Duration
	// Probes are the answers. No required probe means that being alive is health enough.
	Probes []ProbeResult
}

// A Result is what a health report led to.
type Result string

// The results. The zero value is ResultIdle.
const (
	ResultIdle     Result = ""         // nothing is on trial in this run
	ResultWait     Result = "Wait"     // still on trial
	ResultPromoted Result = "Promoted" // the config is the last known good one now
	ResultRejected Result = "Rejected" // the config is bad; restart on the fallback
)

// Progress is how far a trial is, after a report.
type Progress struct {
	Result   Result
	Why      string    // what is missing, or what decided
	Soak     Soak      // after the report
	Limits   Limits    // that were applied, defaults filled in
	Rejected *BadEntry // set with ResultRejected
}

// Promote judges the running config after a health report. It is pure: the Tracker writes what it says.
//
// A config is promoted when its healthy time is longer than Limits.Trial (equal is still on trial), the present run was
// healthy without a break for Limits.MinHealthyRun, and every required probe passes in this report. It is rejected when
// a required probe failed without a break for longer than Limits.ProbeDeadline. The time between two reports is
// healthy if both are.
func Promote(s State, l Limits, h Health) Progress {
	return Progress{}
}
