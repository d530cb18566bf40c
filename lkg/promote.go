// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"cmp"
	"strconv"
	"time"
)

// MaxElapsed is the most that one health report can add. What lies further back was not observed: the machine may
// have been suspended, or reports were missed. Report more often than this.
const MaxElapsed = time.Minute

// A ProbeResult is the answer of one probe.
type ProbeResult struct {
	Name     string
	Required bool  // a wanted probe is only shown; a required one decides
	Err      error // nil: it passes
}

// Health is one report about the run since the last [Tracker.Start]. Report only while that run lasts.
type Health struct {
	// Elapsed is the monotonic time since the previous report of this run, or since the start for the first. It is
	// counted up to MaxElapsed. Never compute it from the wall clock or from another process's readings.
	Elapsed time.Duration
	// Probes are the answers. No required probe means that being alive is health enough.
	Probes []ProbeResult
}

// A Result is what a health report led to.
type Result string

// The results. The zero value is resultIdle.
const (
	resultIdle     Result = ""         // nothing is on trial in this run
	ResultWait     Result = "Wait"     // still on trial
	ResultPromoted Result = "Promoted" // the config is the last known good one now
	ResultRejected Result = "Rejected" // the config is bad; restart on the fallback
)

// Progress is how far a trial is, after a report.
type Progress struct {
	Result   Result
	Why      string    // what is missing, or what decided
	Soak     Soak      // after the report
	Limits   Limits    // that were applied, defaults filled in
	Rejected *BadEntry // set with ResultRejected
}

// Promote judges the running config after a health report. It is pure: the Tracker writes what it says.
//
// A config is promoted when its healthy time is longer than Limits.Trial (equal is still on trial), the present run was
// healthy without a break for Limits.MinHealthyRun, and every required probe passes in this report. It is rejected when
// a required probe failed without a break for longer than Limits.ProbeDeadline. The time between two reports is
// healthy if both are.
func Promote(s State, l Limits, h Health) Progress {
	p := Progress{Limits: l.effective(), Soak: s.Soak}
	if !s.running() || s.Current.Ref.IsLocal() {
		p.Why = "the assigned config is not in use, or is the local one"
		return p
	}
	if bad := s.badEntry(s.Current.Ref); bad != nil {
		entry := *bad
		p.Result, p.Why, p.Rejected = ResultRejected, entry.Reason, &entry
		return p
	}
	if !s.OnTrial() {
		p.Why = "the config is the last known good one already"
		return p
	}
	failing := h.failing()
	p.Soak = s.Soak.after(&s, h.elapsed(), failing == "")
	p.judge(s.Current.Ref, failing)
	return p
}

// judge compares the soak with the limits.
func (p *Progress) judge(r Ref, failing string) {
	l, k := p.Limits, p.Soak
	switch {
	case k.Last == soakFailing && k.Failing > l.ProbeDeadline:
		reason := reasonProbe(r, failing, l.ProbeDeadline)
		p.Result, p.Why = ResultRejected, reason
		p.Rejected = &BadEntry{Ref: r, Reason: reason, Evidence: "healthy before for " + k.Accumulated.String()}
	case k.Last == soakFailing:
		p.Result, p.Why = ResultWait, "required probe "+strconv.Quote(failing)+" fails"
	case k.Accumulated <= l.Trial:
		p.Result, p.Why = ResultWait, "healthy for "+k.Accumulated.String()+", needed: more than "+l.Trial.String()
	case k.Run < l.MinHealthyRun:
		p.Result, p.Why = ResultWait, "this run is healthy for "+k.Run.String()+", needed: "+l.MinHealthyRun.String()
	default:
		p.Result, p.Why = ResultPromoted, "healthy for "+k.Accumulated.String()
	}
}

// after is the soak with one more report. The first report of a run speaks for the time since the start.
func (k Soak) after(s *State, elapsed time.Duration, healthy bool) Soak {
	if k.Assignment != s.Current.ID {
		k = Soak{Assignment: s.Current.ID}
	}
	k.BootID = s.BootID
	before := k.Last
	if !healthy {
		k.Last, k.Run = soakFailing, 0
		if before != soakHealthy {
			k.Failing += elapsed
		}
		return k
	}
	k.Last, k.Failing = soakHealthy, 0
	if before != soakFailing {
		k.Run += elapsed
		k.Accumulated += elapsed
	}
	return k
}

// nextRun is the soak at a new start: what was added up stays, the run begins anew.
func (k Soak) nextRun() Soak {
	k.Run, k.Failing, k.Last = 0, 0, ""
	return k
}

func (h Health) elapsed() time.Duration { return min(max(h.Elapsed, 0), MaxElapsed) }

// failing is the name of the first required probe that fails, or nothing.
func (h Health) failing() string {
	for _, p := range h.Probes {
		if p.Required && p.Err != nil {
			return cmp.Or(p.Name, "unnamed")
		}
	}
	return ""
}
