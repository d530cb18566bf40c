// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "time"

// An OutcomeKind is the result of looking for the desired config.
type OutcomeKind string

// The kinds. Invalid, Missing and Mismatch are known to be wrong: the API server answered, and the answer was that
// the desired source can not be used. Unreachable and Forbidden are no such answer: the source may well be right.
const (
	DesiredUnknown     OutcomeKind = ""            // never looked
	DesiredCorrect     OutcomeKind = "Correct"     // names a config that exists
	DesiredEmpty       OutcomeKind = "Empty"       // asks for the local config
	DesiredInvalid     OutcomeKind = "Invalid"     // malformed source
	DesiredMissing     OutcomeKind = "Missing"     // the object does not exist
	DesiredMismatch    OutcomeKind = "Mismatch"    // the object has another UID or digest
	DesiredForbidden   OutcomeKind = "Forbidden"   // the node may not read it
	DesiredUnreachable OutcomeKind = "Unreachable" // no answer
)

// An Outcome is the last result of looking for the desired config, so that the next start knows it from disk alone.
type Outcome struct {
	Kind  OutcomeKind `json:"outcome"`
	Cause string      `json:"cause,omitempty"` // for the condition, for example "invalid NodeConfigSource, …"
	At    time.Time   `json:"at,omitzero"`
}
