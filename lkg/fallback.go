// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

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
	if d.again {
		return // begun anew, and decided
	}
	d.v.Condition = Condition{st, reason, d.fallbackMessage()}
}

// tryFallback uses r if nothing speaks against it, and otherwise notes what does.
func (d *decision) tryFallback(role Role, r Ref) bool {
	if r.IsLocal() {
		return false
	}
	if d.v.Steps[0].Ref.Same(r) && d.v.Case.suspects(r) {
		return false // it is the current config, which is avoided
	}
	why := d.against(role, r)
	if why != "" {
		d.v.Steps = append(d.v.Steps, Step{role, r, why})
		return false
	}
	d.v.Role, d.v.Use = role, r
	return true
}

// against says why r can not be the fallback, or nothing.
func (d *decision) against(role Role, r Ref) string {
	s := &d.in.State
	if bad := s.badEntry(r); bad != nil {
		return "listed as bad: " + bad.Reason
	}
	if d.v.NewlyRejected && r.Same(s.Current.Ref) {
		return "just found bad"
	}
	if c := d.ask(r); c.Outcome != CheckOK {
		return "its check says " + c.Outcome.String()
	}
	why, bad := d.suspicion(role, r)
	if bad != nil {
		d.v.after.bad = bad
		return "just found bad: " + bad.Reason
	}
	if why == "" && !d.in.Recorded && d.v.Case.suspects(r) {
		return "under suspicion, and the start is not on record"
	}
	return why
}

// fallBackToLocal is the end of the walk. If the local config does not live either, no config is to blame. Where no case is
// open there is nothing to compare it with: then it stays, and a person must look.
func (d *decision) fallBackToLocal() {
	d.v.Role, d.v.Use = RoleLocal, Ref{}
	why := d.crashedBelow(Ref{})
	switch {
	case why == "" && d.v.Case.below() != "":
		d.v.Alarm = "nothing is left to fall back to: " + d.v.Case.below()
	case why == "":
	case d.v.Case == nil || d.v.Case.Phase == phaseCommon:
		d.v.Alarm = "nothing is left to fall back to: " + why
	default:
		d.beginAnew(d.v.Case.withFallen(d.in.State.usedBy(RoleLocal, Ref{}), why).withPhase(phaseCommon))
	}
}

// fallbackMessage is// fallbackMessage is the literal message, and behind it what was passed over on the way, if anything. The detail says why.
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
