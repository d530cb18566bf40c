// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// A CheckOutcome is what became of loading and validating a config.
type CheckOutcome int

// The outcomes. The zero value is CheckUnavailable, which never makes a config usable and never makes it bad.
const (
	CheckUnavailable CheckOutcome = iota // its checkpoint is missing or damaged; it can be fetched again
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
	Outcome CheckOutcome
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
func (c CheckOutcome) String() string {
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
