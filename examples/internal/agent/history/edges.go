// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/lkg"
)

// A Seen is what of a status was compared last.
type Seen struct {
	Assigned  Config    `json:"assigned,omitzero"`
	Active    Config    `json:"active,omitzero"`
	Good      Config    `json:"good,omitzero"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Bad are digests of the entries of the bad list.
	Bad   []string `json:"bad,omitempty"`
	Stuck bool     `json:"stuck,omitempty"`
	Alarm bool     `json:"alarm,omitempty"`
	// Overdue says that the trial should have ended.
	Overdue bool `json:"overdue,omitempty"`
}

// seenIn is what of s is compared. now is the wall clock, by which a trial is overdue.
func seenIn(s configsync.Status, now time.Time) Seen {
	seen := Seen{
		Assigned: configOf(s.Assigned), Active: configOf(s.Active), Good: configOf(s.LastKnownGood),
		StartedAt: s.StartedAt.UTC(), Stuck: s.Error != "", Alarm: s.Alarm != "",
		Overdue: s.Trial != nil && doctor.Overdue(s.Trial.Since, s.Trial.Needed, now),
	}
	for _, b := range s.Rejected {
		seen.Bad = append(seen.Bad, markOf(b))
	}
	slices.Sort(seen.Bad)
	return seen
}

// markOf is short: the list may have hundreds of entries.
func markOf(b lkg.BadEntry) string {
	sum := sha256.Sum256([]byte(strconv.Quote(b.Ref.UID) + strconv.Quote(b.Ref.Key) + strconv.Quote(b.Ref.Digest)))
	return hex.EncodeToString(sum[:6])
}

// Edges is what has happened between before and s, in an order in which it can have happened. It is pure; N and At are not set.
func Edges(before Seen, s configsync.Status, at time.Time) []Entry {
	now := seenIn(s, at)
	var out []Entry
	add := func(k Kind, c Config, why string) { out = append(out, Entry{Kind: k, Config: c, Why: why}) }
	if now.Good != before.Good && now.Good != (Config{}) {
		add(Promoted, now.Good, "its trial is over")
	}
	switch {
	case now.Assigned == before.Assigned:
	case now.Assigned == (Config{}):
		add(Reset, now.Assigned, "the source asks for it")
	default:
		add(Adopted, now.Assigned, "the source names it")
	}
	out = append(out, rejections(before, now, s)...)
	if !now.StartedAt.Equal(before.StartedAt) {
		add(Started, now.Active, s.Condition.Message)
	}
	if now.Active != before.Active && now.Active != now.Assigned {
		out = append(out, Entry{Kind: RolledBack, Config: now.Active, Class: classOf(s), Why: s.Condition.Reason})
	}
	return append(out, troubles(before, now, s)...)
}

// troubles compares what is in the way, and what is over.
func troubles(before, now Seen, s configsync.Status) []Entry {
	var out []Entry
	add := func(k Kind, c Config, why string) { out = append(out, Entry{Kind: k, Config: c, Why: why}) }
	if now.Alarm && !before.Alarm {
		add(Alarm, now.Active, s.Alarm)
	}
	if now.Overdue && !before.Overdue {
		add(Overdue, now.Assigned, "its trial began at "+s.Trial.Since.UTC().Format(time.RFC3339)+" and needs "+s.Trial.Needed.String()+" of health")
	}
	switch {
	case now.Stuck && !before.Stuck:
		add(Stuck, now.Assigned, s.Error)
	case before.Stuck && !now.Stuck:
		add(Freed, now.Assigned, "")
	}
	return out
}

// rejections compares the bad lists.
func rejections(before, now Seen, s configsync.Status) []Entry {
	var out []Entry
	for i := len(s.Rejected) - 1; i >= 0; i-- { // the newest is the last to be told
		b := s.Rejected[i]
		if _, known := slices.BinarySearch(before.Bad, markOf(b)); !known {
			out = append(out, Entry{Kind: Rejected, Config: configOf(b.Ref), Class: b.Class(), Why: b.Reason})
		}
	}
	gone := 0
	for _, mark := range before.Bad {
		if _, held := slices.BinarySearch(now.Bad, mark); !held {
			gone++
		}
	}
	if gone > 0 {
		out = append(out, Entry{Kind: Forgotten, Why: strconv.Itoa(gone) + " of the rejected configs may be tried again"})
	}
	return out
}

// classOf is that of the evidence against the assigned config; empty if it is not listed.
func classOf(s configsync.Status) lkg.Class {
	for _, b := range s.Rejected {
		if b.Ref.Same(s.Assigned) {
			return b.Class()
		}
	}
	return ""
}
