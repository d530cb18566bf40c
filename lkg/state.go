// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"slices"
	"time"
)

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

	message string // of the condition while it is used: what is read from a record has it made once
}

// A BadEntry is a config that must not be used, and why.
type BadEntry struct {
	Ref      Ref
	Time     time.Time // when it was found bad; set by the Tracker
	Reason   string    // equal to the reason of the condition
	Evidence string    // details: counted and ignored starts, what the check said

	Signature string   // of the end that decided, see Exit; empty: unknown, or no end decided
	Last      []string // lines of that end, see Exit
	Binary    string   // the program that it is bad for, of Options.Binary; empty: for each
}

// A soakRecord is the healthy time of one assignment, and how the present run is. All durations are sums of monotonic
// time.
type soakRecord struct {
	Assignment  string        `json:"assignment,omitempty"`
	Accumulated time.Duration `json:"accumulated,omitempty"` // nanoseconds, over all runs
	Run         time.Duration `json:"run,omitempty"`         // healthy without a break, in the present run, of any config
	Longest     time.Duration `json:"longest,omitempty"`     // the most that spell has been, in the present run
	Sum         time.Duration `json:"sum,omitempty"`         // healthy, of one config, since an end that was not planned
	Failing     time.Duration `json:"failing,omitempty"`     // a required probe failed without a break, in the present run
	Failed      time.Duration `json:"failed,omitempty"`      // a required probe failed in all, as Sum
	Unknown     time.Duration `json:"unknown,omitempty"`     // for how long there has been no answer; 0 after one
	Last        string        `json:"last,omitempty"`        // of the present run: soakHealthy, …; or none
	BootID      string        `json:"bootID,omitempty"`

	spell time.Duration // as Run, but time without an answer is no break
	lived time.Duration // Longest of the run before
}

// What the last report of a run was.
const (
	soakHealthy = "healthy"
	soakFailing = "failing"
	soakUnknown = "unknown"
)

// A Notice says that a record could not be used. It is for the log and the status; the record was set aside.
type Notice struct {
	Stream string
	Err    error
}

// A State is everything that a decision rests on, read from the records.
type State struct {
	Version string // of the agent, as used in the names of the belief records
	BootID  string
	Binary  string // of Options.Binary, at the last start; empty: unknown

	Current       Assignment
	LastKnownGood Ref
	GoodID        string         // the assignment that made it the last known good one; empty: the local config is
	Previous      Ref            // the last known good config before it
	PromotedAt    time.Time      // zero: never
	Marker        *restartMarker // the last planned restart, consumed or not
	Consumed      string         // id of the last marker that a start consumed
	Desired       Outcome

	Bad    []BadEntry // oldest first
	Starts []Start    // oldest first; the last one is the present start
	Soak   soakRecord
	Case   *Case // nil: no config is under suspicion

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
func Settled(s State) bool {
	if s.CurrentLost || s.LastKnownGoodLost || s.Desired.unclear() || s.OnTrial() || s.badEntry(s.Current.Ref) != nil {
		return false
	}
	last := s.lastStart()
	return last == nil || (last.Used.Role == RoleCurrent && last.Used.is(s.Current.Ref))
}

// running reports whether the last start uses the current assignment.
func (s *State) running() bool {
	last := s.lastStart()
	return last != nil && last.Assignment == s.Current.ID && last.Used.Role == RoleCurrent && last.Used.is(s.Current.Ref)
}

func (s *State) lastStart() *Start {
	if len(s.Starts) == 0 {
		return nil
	}
	return &s.Starts[len(s.Starts)-1]
}

// lastEvidence is the newest start of which more than the time is known.
func (s *State) lastEvidence() *Start {
	for i := len(s.Starts) - 1; i >= 0; i-- {
		if s.Starts[i].evidenced() {
			return &s.Starts[i]
		}
	}
	return nil
}

// BadEntry returns a copy of the entry that lists r as bad, or nil. Content is listed, not an object: the entry of
// another UID with the same key and digest lists r too. An entry that names a program lists r for that program alone.
// An entry without key and digest, as a person may write it, lists each version of its UID. The local config is never
// listed.
func (s *State) BadEntry(r Ref) *BadEntry {
	b := s.badEntry(r)
	if b == nil {
		return nil
	}
	e := *b
	if e.Ref.UID != r.UID {
		e.Reason += "; (UID: " + r.UID + ") has the same content"
	}
	return &e
}

// badEntry is the entry that lists r, or nil; one of the same UID is preferred.
func (s *State) badEntry(r Ref) (found *BadEntry) {
	if r.IsLocal() {
		return nil
	}
	for i := range s.Bad {
		e := &s.Bad[i]
		if e.Binary != "" && s.Binary != "" && e.Binary != s.Binary {
			continue
		}
		same := r.hasContent(e.Ref)
		switch {
		case e.Ref.UID == r.UID && (e.Ref.Same(r) || e.Ref.Key == "" && e.Ref.Digest == ""):
			return e
		case same && found == nil:
			found = e
		}
	}
	return found
}

// freshMarker is the last marker, if no start consumed it.
func (s *State) freshMarker() *restartMarker {
	if s.Marker == nil || s.Marker.ID == s.Consumed {
		return nil
	}
	return s.Marker
}

// clone is a deep copy.
func (s *State) clone() State {
	c := *s
	c.Bad = slices.Clone(s.Bad)
	c.Starts = slices.Clone(s.Starts)
	c.Notices = slices.Clone(s.Notices)
	if s.Case != nil {
		k := *s.Case
		k.Below, k.Last = slices.Clone(k.Below), slices.Clone(k.Last)
		c.Case = &k
	}
	if s.Marker != nil {
		m := *s.Marker
		c.Marker = &m
	}
	return c
}

// A Ref names one version of one config. The zero Ref is the local config: the init config of the node, or its
// built-in defaults.
//
// UID, Key and Digest are the identity. Namespace, Name and ResourceVersion are information for people.
type Ref struct {
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Key             string `json:"key,omitempty"`
	Digest          string `json:"digest,omitempty"`
}

// Same reports whether both refs name the same content: UID, Key and Digest are equal.
func (r Ref) Same(other Ref) bool {
	return r.UID == other.UID && r.Key == other.Key && r.Digest == other.Digest
}

// hasContent reports whether both refs name the same bytes, in whichever object.
func (r Ref) hasContent(other Ref) bool {
	return r.Digest != "" && r.Key == other.Key && r.Digest == other.Digest
}

// IsLocal reports whether r is the local config.
func (r Ref) IsLocal() bool { return r.Same(Ref{}) }

// nextPrevious is the config before the one that is about to be promoted: the first of the present last known good one
// and the one before it that is not listed as bad, and not left for how its runs ended.
func (s *State) nextPrevious() Ref {
	c := s.openCase()
	for _, r := range []Ref{s.LastKnownGood, s.Previous} {
		if !r.IsLocal() && s.badEntry(r) == nil && !c.hasSuspect(r) && c.findFallen(r) == nil {
			return r
		}
	}
	return Ref{}
}
