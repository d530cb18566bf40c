// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
)

// A Cap is how many nodes may be away at a time.
type Cap struct {
	// Key is what it counts: slots that carry the key, or all of them if it is empty.
	Key string
	// Max is the number, at least 1: a scope that must not be touched is closed.
	Max int
	// From says where the cap was set, for the refusal.
	From string
}

// An Absent node is away for a reason of somebody else: it uses capacity like a slot. Nodes that have a slot are not counted twice.
type Absent struct {
	UID  string
	Keys []string
}

// over returns why the ledger breaks a cap by its last slot, or nil. Caps that don't count this slot are not asked: one that was lowered below
// what is in flight blocks what it counts and nothing else.
func (l Ledger) over(a Admission, caps []Cap, absent []Absent) error {
	for _, c := range caps {
		if !counts(c.Key, a.Keys) {
			continue
		}
		if used := l.used(c.Key, absent); used > c.Max {
			return &Error{
				Event: EventAdmit, rule: ruleCap, Cap: &c,
				message: capMessage(a.Shadow.Node, c, used-1),
			}
		}
	}
	return nil
}

// Used is how many nodes count for a key: those that have a slot, and those that are absent without one. The empty key counts all.
func (l Ledger) Used(key string, absent []Absent) int { return l.used(key, absent) }

func (l Ledger) used(key string, absent []Absent) int {
	n := 0
	for _, s := range l.Slots {
		if counts(key, s.Keys) {
			n++
		}
	}
	for _, a := range absent {
		if counts(key, a.Keys) && l.Slot(a.UID) == nil {
			n++
		}
	}
	return n
}

func counts(key string, keys []string) bool { return key == "" || slices.Contains(keys, key) }
