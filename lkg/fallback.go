// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "strconv"

// fallBack picks what to use instead of the current config.
func (d *decision) fallBack(st Status, reason string, cause error) {
	s := &d.in.State
	d.v.OnTrial = false
	d.v.Detail = reason
	if cause != nil {
		d.v.Detail += ": " + cause.Error()
	}
	d.v.Steps = append(d.v.Steps, Step{RoleCurrent, s.Current.Ref, reason})
	if !d.tryFallback(RoleLastKnownGood, s.LastKnownGood) && !d.tryFallback(RolePrevious, s.Previous) {
		d.fallBackToLocal()
	}
	d.v.Condition = Condition{st, reason, d.fallbackMessage()}
}

// tryFallback uses r if nothing speaks against it, and otherwise notes what does.
func (d *decision) tryFallback(role Role, r Ref) bool {
	if r.IsLocal() {
		return false
	}
	why := d.against(role, r)
	if why != "" {
		d.v.Steps = append(d.v.Steps, Step{role, r, why})
		return false
	}
	d.v.Role, d.v.Use = role, r
	return true
}

// against says why r can not be the fallback, or nothing. It lowers the floor if r itself crashed too often.
func (d *decision) against(role Role, r Ref) string {
	s := &d.in.State
	if below(d.v.Floor.Role, role) {
		return "not used again: " + d.v.Floor.Why
	}
	if bad := s.badEntry(r); bad != nil {
		return "listed as bad: " + bad.Reason
	}
	if d.v.NewlyRejected && r.Same(s.Current.Ref) {
		return "just found bad"
	}
	if c := d.ask(r); c.Outcome != CheckOK {
		return "its check says " + c.Outcome.String()
	}
	next := RoleLocal
	if role == RoleLastKnownGood && !s.Previous.IsLocal() {
		next = RolePrevious
	}
	return d.lower(r, next)
}

// fallBackToLocal is the end of the walk. If the local config crashes too, it stays, and a person must look.
func (d *decision) fallBackToLocal() {
	d.v.Role, d.v.Use = RoleLocal, Ref{}
	if d.v.Floor.Role != RoleLocal {
		d.lower(Ref{}, RoleLocal)
	}
	if d.v.Floor.Role == RoleLocal {
		d.v.Alarm = "nothing is left to fall back to: " + d.v.Floor.Why
	}
}

// lower sets the floor to next if r crashed more often as a fallback than its limits tolerate, and says so.
func (d *decision) lower(r Ref, next Role) string {
	n, threshold := crashesAsFallback(&d.in.State, r), max(d.limits(r).CrashLoopThreshold, fallbackThreshold)
	if n <= threshold {
		return ""
	}
	why := "fallback " + label(r, d.v.Origin) + " crashed, " + strconv.Itoa(n) + " unexplained restarts, tolerated: " +
		strconv.Itoa(threshold)
	d.v.Floor = Floor{Good: d.in.State.GoodID, Role: next, Why: why}
	return why
}

// fallbackMessage is the literal message, and behind it what was passed over on the way, if anything. The detail says why.
func (d *decision) fallbackMessage() string {
	m := using(d.v.Role, d.v.Use, d.v.Origin)
	for _, st := range d.v.Steps[1:] {
		m += "; passed over " + label(st.Ref, d.v.Origin)
		d.v.Detail += "; passed over " + label(st.Ref, d.v.Origin) + ": " + st.Why
	}
	if d.v.Alarm != "" {
		m += "; " + d.v.Alarm
	}
	return m
}

func label(r Ref, origin Origin) string {
	if r.IsLocal() {
		return "(" + string(origin) + ")"
	}
	return "(UID: " + r.UID + ")"
}

// below reports whether the floor forbids role.
func below(floor, role Role) bool {
	switch floor {
	case RoleLocal:
		return role == RoleLastKnownGood || role == RolePrevious
	case RolePrevious:
		return role == RoleLastKnownGood
	default:
		return false
	}
}
