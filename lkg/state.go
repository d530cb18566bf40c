// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "time"

// A Role is the place of a config in the choice.
type Role string

// The roles, from the first choice to the last. A fallback to the local config always has RoleLocal, also where the
// local config is the last known good one. The local config used because it is assigned has RoleCurrent.
const (
	RoleCurrent       Role = "current"
	RoleLastKnownGood Role = "last-known-good"
	RolePrevious      Role = "previous" // the last known good config before the present one
	RoleLocal         Role = "local"
)

// An Assignment is the `current` record. The zero value is the local config.
type Assignment struct {
	Ref    Ref
	ID     string    // new with each assignment; starts and healthy time belong to it
	At     time.Time // wall clock, for people and for starts without evidence
	BootID string
}

// A BadEntry is a config that must not be used, and why.
type BadEntry struct {
	Ref      Ref
	Time     time.Time // when it was found bad; set by the Tracker
	Reason   string    // equal to the reason of the condition
	Evidence string    // details: counted and ignored starts, what the check said
}

// A Soak is the healthy time of one assignment. All durations are sums of monotonic time.
type Soak struct {
	Assignment  string        `json:"assignment,omitempty"`
	Accumulated time.Duration `json:"accumulated,omitempty"` // nanoseconds, over all runs
	Run         time.Duration `json:"run,omitempty"`         // healthy without a break, in the present run
	Failing     time.Duration `json:"failing,omitempty"`     // a required probe failed without a break, in the present run
	BootID      string        `json:"bootID,omitempty"`
}

// A Floor is how far fallbacks stepped down. It holds while the last known good config is LastKnownGood: no
// fallback goes above Role.
type Floor struct {
	LastKnownGood Ref       `json:"lastKnownGood,omitzero"`
	Role          Role      `json:"role,omitempty"` // RolePrevious or RoleLocal; empty: no floor
	Why           string    `json:"why,omitempty"`
	At            time.Time `json:"at,omitzero"`
}

// A Notice says that a record could not be used. It is for the log and the status; the record was set aside.
type Notice struct {
	Stream string
	Err    error
}

// A State is everything that a decision rests on, read from the records.
type State struct {
	Version string // of the agent, as used in the names of the belief records
	BootID  string

	Current       Assignment
	LastKnownGood Ref
	Previous      Ref       // the last known good config before it
	PromotedAt    time.Time // zero: never
	Marker        *Marker   // the last planned restart, consumed or not
	Consumed      string    // id of the last marker that a start consumed
	Desired       Outcome

	Bad    []BadEntry // oldest first
	Starts []Start    // oldest first; the last one is the present start
	Soak   Soak
	Floor  Floor

	CurrentLost       bool // the `current` record exists and can not be read
	LastKnownGoodLost bool // the `last-known-good` record exists and can not be read
	Notices           []Notice
}

// OnTrial reports whether the current config still has to prove itself: it is neither local nor the last known good
// one. It says nothing about whether it is in use.
func (s *State) OnTrial() bool {
	return !s.Current.Ref.IsLocal() && !s.Current.Ref.Same(s.LastKnownGood)
}

// Settled reports whether this is a good moment to replace the agent by another version: the desired config is
// known, in use, and not on trial. Versions do not read each other's beliefs, so a new version would try a bad
// config again and give a crashing one a new count.
func Settled(s State) bool { return false }
