// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/belayproject/belay/lkg"
)

// Kind says what has happened.
type Kind string

// The kinds of entries.
const (
	Started    Kind = "Started"    // what is configured was started with the config
	Adopted    Kind = "Adopted"    // the config was assigned
	Reset      Kind = "Reset"      // the local config was assigned
	Promoted   Kind = "Promoted"   // the config became the last known good one
	Rejected   Kind = "Rejected"   // the config was listed as bad
	Forgotten  Kind = "Forgotten"  // configs were taken from that list
	RolledBack Kind = "RolledBack" // a fallback is used in place of the assigned config
	Stuck      Kind = "Stuck"      // something is in the way
	Freed      Kind = "Freed"      // nothing is in the way any more
	Alarm      Kind = "Alarm"      // nothing is left to fall back to, or what is in use is not well
	Overdue    Kind = "Overdue"    // a trial is neither promoted nor rejected, for far longer than it needs
	Drifted    Kind = "Drifted"    // what was rendered is not what is there
	Lost       Kind = "Lost"       // the journal before this entry could not be read
)

// Urgent reports whether somebody should look.
func (k Kind) Urgent() bool {
	return k == Rejected || k == RolledBack || k == Stuck || k == Alarm || k == Overdue || k == Drifted || k == Lost
}

// A Config names what an entry is about. The zero Config is the local one.
type Config struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	Key       string `json:"key,omitempty"`
	Digest    string `json:"digest,omitempty"`
}

func configOf(r lkg.Ref) Config {
	return Config{Namespace: r.Namespace, Name: r.Name, UID: r.UID, Key: r.Key, Digest: r.Digest}
}

// String is for people.
func (c Config) String() string {
	if c == (Config{}) {
		return "the local config"
	}
	return c.Namespace + "/" + c.Name + " (UID: " + c.UID + ")"
}

// An Entry is one thing that has happened.
type Entry struct {
	// N counts entries from 1; no number is used twice.
	N    uint64    `json:"n"`
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// Config is what it is about.
	Config Config `json:"config,omitzero"`
	// Class is the kind of evidence of Rejected, and of a RolledBack that follows one.
	Class lkg.Class `json:"class,omitempty"`
	Why   string    `json:"why,omitempty"`
	// Times is how often it has happened in a row, and Last when for the last time. Both are zero for once.
	Times int       `json:"times,omitempty"`
	Last  time.Time `json:"last,omitzero"`
}

// same reports whether o tells the same as e, at another time.
func (e Entry) same(o Entry) bool {
	return e.Kind == o.Kind && e.Config == o.Config && e.Class == o.Class && e.Why == o.Why
}
