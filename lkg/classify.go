// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "time"

// A Cause is why a start happened.
type Cause string

// The causes. Only Crash and Unknown are unexplained and count against a config.
const (
	CauseAdoption Cause = "Adoption" // restart that was planned in order to adopt a config
	CausePlanned  Cause = "Planned"  // restart that was planned for another reason
	CauseReboot   Cause = "Reboot"   // the machine was started anew
	CauseCrash    Cause = "Crash"    // the previous run ended badly
	CauseUnknown  Cause = "Unknown"  // nothing explains it
)

// An ExitKind is how a run ended.
type ExitKind string

// The kinds of exit. The zero value is ExitUnknown.
const (
	ExitUnknown ExitKind = ""      // nobody knows
	ExitClean   ExitKind = "Clean" // status 0, or stopped on request
	ExitCrash   ExitKind = "Crash" // bad status, killed by a signal, out of memory, watchdog
)

// Exit is how the previous run ended, as far as the caller knows. The zero value says that nothing is known.
type Exit struct {
	Kind   ExitKind
	Detail string // for people, for example "exit status 255"
}

// A Moment is a wall clock reading with the boot it was taken in. BootID is empty where the platform has none.
type Moment struct {
	Wall   time.Time
	BootID string
}

// A Marker announces one restart before it happens. The next start consumes it.
type Marker struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Kind   Cause     `json:"kind"` // CauseAdoption or CausePlanned
	BootID string    `json:"bootID,omitempty"`
}

// Used is what a start ran: the place it had in the choice, and its identity. A zero Role says that the decision
// was never recorded.
type Used struct {
	Role   Role   `json:"role,omitempty"`
	UID    string `json:"uid,omitempty"`
	Key    string `json:"key,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// A Start is the evidence about one start.
type Start struct {
	At         time.Time `json:"at"`
	BootID     string    `json:"bootID,omitempty"`
	Cause      Cause     `json:"cause"`
	Detail     string    `json:"detail,omitempty"`
	Assignment string    `json:"assignment,omitempty"` // id of the assignment that was current; empty: no evidence
	N          int       `json:"n,omitempty"`          // 1 for the first start of the assignment; 0: no evidence
	MarkerID   string    `json:"markerID,omitempty"`   // the marker that this start consumed
	Used       Used      `json:"used,omitzero"`        // what this start ran
	After      Used      `json:"after,omitzero"`       // what the run before it ran
	Settled    bool      `json:"settled,omitempty"`    // a fallback was healthy for a whole trial since: not counted against it
}

// Classify says why a start at now happened, from the start before it (nil: none on record), the marker that no
// start consumed yet (nil: none) and the way the previous run ended. detail is a short text for people.
//
// The first rule that fits decides. A marker made in this boot, or in that of the previous start, gives its own
// kind. Another boot than that of the previous start is a reboot. An exit that is known to be bad is a crash. All
// else is unknown; so is a clean exit, because nobody planned it: whoever stops the process on purpose calls
// [Tracker.PlanRestart] first.
func Classify(prev *Start, marker *Marker, now Moment, e Exit) (cause Cause, detail string) {
	return CauseUnknown, ""
}
