// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"cmp"
	"time"
)

// A Cause is why a start happened.
type Cause string

// The causes. Only Crash and Unknown are unexplained and count against a config. A [Fault] of an [Exit] is a cause
// too.
const (
	CauseAdoption Cause = "Adoption" // restart that was planned in order to adopt a config
	CausePlanned  Cause = "Planned"  // restart that was planned for another reason
	causeReboot   Cause = "Reboot"   // the machine was started anew
	CauseCrash    Cause = "Crash"    // the previous run ended badly
	CauseUnknown  Cause = "Unknown"  // nothing explains it

	causeNotExecuted = Cause(FaultNotExecuted)
	causeEnvironment = Cause(FaultEnvironment)
	causeSupervisor  = Cause(FaultSupervisor)
)

// A moment is a wall clock reading with the boot it was taken in. BootID is empty where the platform has none.
type moment struct {
	Wall   time.Time
	BootID string
}

// A Marker announces one restart before it happens. The next start consumes it.
type restartMarker struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Kind   Cause     `json:"kind"` // CauseAdoption or CausePlanned
	BootID string    `json:"bootID,omitempty"`
}

// Used is what a start ran: the place it had in the choice, its identity, and the program. A zero Role says that the
// decision was never recorded.
type Used struct {
	Role   Role   `json:"role,omitempty"`
	UID    string `json:"uid,omitempty"`
	Key    string `json:"key,omitempty"`
	Digest string `json:"digest,omitempty"`
	Binary string `json:"binary,omitempty"` // of Options.Binary; empty: unknown
}

// An ending is what is known about the end of the run before a start.
type ending struct {
	Signature string        `json:"signature,omitempty"` // of the Exit
	Witnessed bool          `json:"witnessed,omitempty"` // of the Exit
	Lived     time.Duration `json:"lived,omitempty"`     // the longest time for which that run was healthy without a break
	Last      []string      `json:"last,omitempty"`      // of the Exit; the newest start alone has them
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
	Good       string    `json:"good,omitempty"`       // the State.GoodID at this start
	Settled    bool      `json:"settled,omitempty"`    // it counts against nothing any more: by a healthy run, or a Case

	ending
}

// classify says why a start at now happened, from the start before it (nil: none on record), the marker that no
// start consumed yet (nil: none) and the way the previous run ended. detail is a short text for people.
//
// The first rule that fits decides. A marker made in this boot, or in that of the previous start, gives its own kind.
// Another boot than that of the previous start is a reboot. An exit that was asked for is planned. An exit with a
// [Fault] has that as its cause. One that is known to be bad is a crash. All else is unknown; so is a clean exit, which
// is not planned: a caller that stops the process on purpose says ExitPlanned, or calls [Tracker.PlanRestart] first.
func classify(prev *Start, marker *restartMarker, now moment, e Exit) (cause Cause, detail string) {
	switch {
	case marker.announces(prev, now):
		return marker.Kind, "restart announced at " + marker.At.UTC().Format(time.RFC3339)
	case prev != nil && prev.BootID != "" && now.BootID != "" && prev.BootID != now.BootID:
		return causeReboot, "boot " + now.BootID + " after boot " + prev.BootID
	case e.Kind == ExitPlanned, e.Kind == ExitCounted:
		return CausePlanned, cmp.Or(e.Detail, "stopped on request")
	case e.Fault != "":
		return Cause(e.Fault), cmp.Or(e.Detail, "not by the config")
	case e.Kind == ExitCrash:
		return CauseCrash, cmp.Or(e.Detail, "the previous run ended badly")
	case e.Kind == ExitClean:
		return CauseUnknown, cmp.Or(e.Detail, "clean exit") + ", which nobody planned"
	case prev == nil:
		return CauseUnknown, cmp.Or(e.Detail, "first start on record")
	default:
		return CauseUnknown, cmp.Or(e.Detail, "nothing is known about the end of the previous run")
	}
}

// announces reports whether m, which no start consumed yet, can explain a start at now. A marker of an older boot was
// made for a restart that never came.
func (m *restartMarker) announces(prev *Start, now moment) bool {
	if m == nil || m.ID == "" || (m.Kind != CauseAdoption && m.Kind != CausePlanned) {
		return false
	}
	return m.BootID == now.BootID || (prev != nil && m.BootID == prev.BootID)
}

// unexplained reports whether a start of this cause counts. A cause that this version does not know does.
func (c Cause) unexplained() bool {
	switch c {
	case CauseAdoption, CausePlanned, causeReboot, causeNotExecuted, causeEnvironment, causeSupervisor:
		return false
	default:
		return true
	}
}

// evidenced reports whether more than the time of the start is known.
func (st *Start) evidenced() bool { return st.N > 0 }

func usedBy(s *State, role Role, r Ref) Used { return Used{role, r.UID, r.Key, r.Digest, s.Binary} }

// named is the reference of what is assigned, or good, that u used; or its identity alone.
func fullRef(s *State, u Used) Ref {
	for _, r := range []Ref{s.Current.Ref, s.LastKnownGood, s.Previous} {
		if u.is(r) {
			return r
		}
	}
	return u.toRef()
}

// ref is the identity of u alone.
func (u Used) toRef() Ref { return Ref{UID: u.UID, Key: u.Key, Digest: u.Digest} }

// is reports whether u used r, in any role.
func (u Used) is(r Ref) bool { return u.UID == r.UID && u.Key == r.Key && u.Digest == r.Digest }

// fallback reports whether u is known to have used something else than the assigned config.
func (u Used) fallback() bool { return u.Role != "" && u.Role != RoleCurrent }
