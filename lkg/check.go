// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"strings"
	"time"
)

// A CheckOutcome is what became of loading and validating a config.
type checkOutcome int

// The outcomes. The zero value is CheckUnavailable, which never makes a config usable and never makes it bad.
const (
	CheckUnavailable checkOutcome = iota // its checkpoint is missing or damaged; it can be fetched again
	CheckOK                              // loaded, decoded, valid
	CheckUndecodable                     // can not be decoded: bad at once
	CheckInvalid                         // decoded, and not valid: bad at once
	CheckUndecided                       // it is there, and what judges it gave no answer; it is asked again
)

// An Origin is what the local config is made of.
type Origin string

// The origins of the local config. The zero value counts as OriginDefault.
const (
	OriginDefault Origin = "default" // built-in defaults and flags
	OriginInit    Origin = "init"    // the config the node was provisioned with
)

// A Check is the answer to "is this config usable?".
type Check struct {
	Outcome checkOutcome
	Err     error  // why not; field paths and digests, never payload
	Origin  Origin // of the local config only
}

func (o Origin) orDefault() Origin {
	if o == "" {
		return OriginDefault
	}
	return o
}

// String is a lower-case word for messages.
func (c checkOutcome) String() string {
	switch c {
	case CheckOK:
		return "ok"
	case CheckUndecodable:
		return "undecodable"
	case CheckInvalid:
		return "invalid"
	case CheckUndecided:
		return "undecided"
	default:
		return "unavailable"
	}
}

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

// wrong reports whether the source is known to be unusable.
func (o Outcome) wrong() bool {
	return o.Kind == DesiredInvalid || o.Kind == DesiredMissing || o.Kind == DesiredMismatch
}

// unclear reports whether it is not known which config is desired. A kind that this version does not know is.
func (o Outcome) unclear() bool {
	return o.Kind != DesiredUnknown && o.Kind != DesiredCorrect && o.Kind != DesiredEmpty
}

// cause is the text for the condition, never empty.
func (o Outcome) cause() string {
	if o.Cause != "" {
		return o.Cause
	}
	return "desired source is " + strings.ToLower(string(o.Kind))
}

// replaces reports whether o should be recorded over old. An unanswered request says nothing about a source that was
// found to be wrong, and the words for "no answer" vary with every attempt.
func (o Outcome) replaces(old Outcome) bool {
	switch {
	case o.Kind == DesiredUnreachable || o.Kind == DesiredForbidden:
		return o.Kind != old.Kind && !old.wrong()
	default:
		return o.Kind != old.Kind || o.Cause != old.Cause
	}
}
