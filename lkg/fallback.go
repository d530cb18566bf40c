// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"strconv"
)

// fallBack picks what to use instead of the current config.
func (d *decision) fallBack(st Status, reason string, cause error) {
	s := &d.in.State
	d.v.OnTrial = false
	d.v.Detail = reason
	if cause != nil {
		d.v.Detail += ": " + cause.Error()
	}
	d.v.Steps = append(d.v.Steps, passedOver{RoleCurrent, s.Current.Ref, reason})
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
	if d.v.Steps[0].Ref.Same(r) && d.v.Case.hasSuspect(r) {
		return false // it is the current config, which is avoided
	}
	why := d.against(role, r)
	if why != "" {
		d.v.Steps = append(d.v.Steps, passedOver{role, r, why})
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
	if why == "" && !d.in.Recorded && d.v.Case.hasSuspect(r) {
		return "under suspicion, and the start is not on record"
	}
	return why
}

// fallBackToLocal is the end of the walk. If the local config does not live either, no config is to blame. Where no
// case is open there is nothing to compare it with: then it stays, and a person must look.
func (d *decision) fallBackToLocal() {
	d.v.Role, d.v.Use = RoleLocal, Ref{}
	why := d.crashedBelow(Ref{})
	switch {
	case why == "" && d.v.Case.whyLowest() != "":
		d.v.Alarm = "nothing is left to fall back to: " + d.v.Case.whyLowest()
	case why == "":
	case d.v.Case == nil || d.v.Case.Phase == phaseCommon:
		d.v.Alarm = "nothing is left to fall back to: " + why
	default:
		fallen := d.v.Case.withFallen(usedBy(&d.in.State, RoleLocal, Ref{}), why, fallenFor{})
		d.beginAnew(fallen.withPhase(phaseCommon))
	}
}

// fallbackMessage is the literal message, and behind it what was passed over on the way, if
// anything. The detail says why.
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

// suspicion says why r can not be used in that role on account of how its runs ended, or nothing. entry is set if
// that lists r as bad. It opens a case, and moves one on.
func (d *decision) suspicion(role Role, r Ref) (why string, entry *BadEntry) {
	c := d.v.Case
	switch {
	case c.hasSuspect(r) && c.Phase == phaseRetry:
		return d.judgeRetry(role, r)
	case c.hasSuspect(r):
		tolerated := tolerateCrashes(&d.in.State, r, d.limits(r))
		if c.Weak {
			tolerated = weakThreshold
		}
		showCount(d, c.Counted, tolerated, role)
		return c.Reason, nil
	}
	if f := c.findFallen(r); f != nil {
		return f.Why, nil
	}
	if role == RoleCurrent {
		return d.suspectCurrent(r), nil
	}
	why = d.crashedBelow(r)
	if why != "" {
		d.leaveFallback(role, r, why)
	}
	return why, nil
}

// showCount shows what is held against the current config.
func showCount(d *decision, n, tolerated int, role Role) {
	if role == RoleCurrent {
		d.v.Counted, d.v.Threshold = n, tolerated
	}
}

// judgeRetry judges a suspect that is tried once more.
func (d *decision) judgeRetry(role Role, r Ref) (why string, entry *BadEntry) {
	c, s, l := d.v.Case, &d.in.State, d.limits(r)
	a := d.accountOf(r)
	n, tolerated := a.n, tolerateCrashes(s, r, l)
	boots, agent := d.weakEnds(r, l)
	if role == RoleCurrent && s.OnTrial() && !d.v.after.settle.all {
		n += countBareStarts(s)
	}
	if weak := max(boots, agent); weak > weakThreshold && n <= tolerated {
		n, tolerated = weak, weakThreshold // it takes the machine or the agent down
		if !c.Weak {
			showCount(d, n, tolerated, role)
			return askWitnessAgain(d, role, r, boots, agent), nil
		}
	}
	showCount(d, n, tolerated, role)
	if n <= tolerated {
		return "", nil
	}
	entry = c.badEntry(r, c.convictedBy("tried again, it ended "+countTimes(n)))
	if a.newest != nil && len(a.newest.Last) > 0 {
		entry.Last = a.newest.Last
	}
	entry.Binary = s.Binary
	d.v.Case = c.nextSuspect()
	return entry.Reason, entry
}

// askWitnessAgain compares once more. The suspect was left for crashes or for a probe. By now the machine or the agent
// went down in too many short runs of it: what ran below it has shown nothing about that. It returns why the suspect is
// avoided.
func askWitnessAgain(d *decision, role Role, r Ref, boots, agent int) (why string) {
	c, s := d.v.Case.withPhase(phaseCompare), &d.in.State
	terms := termsOf(s, c.Suspect, d.limits(r), longestRunOf(s, r))
	c.Short, c.Witness, c.Acquit = max(c.Short, terms.Short), max(c.Witness, terms.Witness), max(c.Acquit, terms.Acquit)
	c.Reason, c.Counted, c.Again = reasonWeak(r, boots, agent), max(boots, agent), true
	if role != RoleCurrent {
		c.Reason = nameBelow(d, r) + ", " + countedWeak(boots, agent)
	}
	d.v.Case = c
	weakenCase(d)
	return c.Reason
}

// accountOf is what is held against r in this decision.
func (d *decision) accountOf(r Ref) account {
	if d.v.after.settle.coversCrashes(r) {
		return account{}
	}
	a := accountFor(&d.in.State, r)
	if d.v.after.settle.all {
		a.same = 0
	}
	return a
}

// weakEnds counts the boots and the deaths of the agent that are held against r in this decision.
func (d *decision) weakEnds(r Ref, l Limits) (boots, agent int) {
	if d.v.after.settle.all || !mayHaveWeakEnds(&d.in.State) {
		return 0, 0
	}
	return countWeakEnds(&d.in.State, causeReboot, r, l), countWeakEnds(&d.in.State, causeSupervisor, r, l)
}

// tolerateCrashes is how many unexplained ends of r do not have it left.
func tolerateCrashes(s *State, r Ref, l Limits) int {
	if s.OnTrial() && r.Same(s.Current.Ref) {
		return l.CrashLoopThreshold
	}
	return max(l.CrashLoopThreshold, fallbackThreshold)
}

// suspectCurrent says why the current config is left from now on, or nothing, and opens the case.
func (d *decision) suspectCurrent(cur Ref) (why string) {
	s, a := &d.in.State, d.accountOf(cur)
	if !s.OnTrial() && a.n <= fallbackThreshold && !mayHaveWeakEnds(s) {
		showCount(d, a.n, fallbackThreshold, RoleCurrent)
		return ""
	}
	l := d.limits(cur)
	n, tolerated := a.n, tolerateCrashes(s, cur, l)
	boots, agent := 0, 0
	if s.OnTrial() {
		if n, d.v.Ignored = tally(s); d.v.after.settle.coversCrashes(cur) {
			n = 0
		}
	}
	if !d.v.Case.hasSuspect(cur) {
		boots, agent = d.weakEnds(cur, l)
	}
	weak := n <= tolerated && max(boots, agent) > weakThreshold
	if weak {
		n, tolerated = max(boots, agent), weakThreshold
	}
	showCount(d, n, tolerated, RoleCurrent)
	switch {
	case weak:
		why = reasonWeak(cur, boots, agent)
	case n > tolerated:
		why = reasonCrashLoop(cur, n, tolerated)
	default:
		return ""
	}
	d.openCase(RoleCurrent, cur, why, n, a)
	if weak {
		weakenCase(d)
	}
	return why
}

// openCase opens a case in this decision. What led to it is settled with that.
func (d *decision) openCase(role Role, r Ref, why string, n int, a account) {
	s := &d.in.State
	c := s.newCase(usedBy(s, role, r), d.limits(r), longestRunOf(s, r))
	c.Reason, c.Counted, c.Witnessed = why, n, a.n > 0 && a.witnessed == a.n
	if a.newest != nil {
		c.Signature, c.Last = a.newest.Signature, a.newest.Last
	}
	d.v.Case, d.v.after.settle = &c, c.settlesWhat()
}

// weakenCase has the case of this decision rest on boots, or on deaths of the agent, which have many causes.
func weakenCase(d *decision) {
	c := d.v.Case
	c.Weak, c.Witnessed, c.Signature, c.Last = true, false, "", nil
	c.Witness = max(c.Witness, multiplyDuration(c.Short, weakFactor))
	d.v.after.settle = c.settlesWhat()
}

// crashedBelow says that r, which is used in place of another config, does not live, or nothing. Where its runs end
// as those of the suspect did, fewer ends are enough.
func (d *decision) crashedBelow(r Ref) string {
	a := d.accountOf(r)
	if a.n > fallbackThreshold {
		if tolerated := max(d.limits(r).CrashLoopThreshold, fallbackThreshold); a.n > tolerated {
			return nameBelow(d, r) + " crashed, " + strconv.Itoa(a.n) + " unexplained restarts, tolerated: " +
				strconv.Itoa(tolerated)
		}
	}
	if a.same >= sameEnds {
		return nameBelow(d, r) + " ended in the same way, " + strconv.Itoa(a.same) + " times"
	}
	return tookDown(d, r)
}

// tookDown says that short runs of r took the machine or the agent down too often, or nothing.
func tookDown(d *decision, r Ref) string {
	if !mayHaveWeakEnds(&d.in.State) {
		return ""
	}
	boots, agent := d.weakEnds(r, d.limits(r))
	if max(boots, agent) <= weakThreshold {
		return ""
	}
	return nameBelow(d, r) + ", " + countedWeak(boots, agent)
}

// nameBelow names a config that is used in place of another one, or the local one that is assigned.
func nameBelow(d *decision, r Ref) string {
	if r.IsLocal() && d.in.State.Current.Ref.IsLocal() {
		return "current " + label(r, d.v.Origin)
	}
	return "fallback " + label(r, d.v.Origin)
}

// leaveFallback leaves r for what is below it. Where no case is open, r becomes the suspect of one.
func (d *decision) leaveFallback(role Role, r Ref, why string) {
	c, a := d.v.Case, d.accountOf(r)
	same := a.same >= sameEnds
	weak := a.n <= fallbackThreshold && (same && c != nil && c.Weak || !same && tookDown(d, r) != "")
	if c != nil && c.Phase != phaseCommon {
		d.v.Case = c.withFallen(usedBy(&d.in.State, role, r), why, fallenFor{Weak: weak})
		return
	}
	n := a.n
	if weak {
		n = max(d.weakEnds(r, d.limits(r)))
	}
	d.openCase(role, r, why, n, a)
	if weak {
		weakenCase(d)
	}
}

// beginAnew decides once more, with nothing held against any config: nothing lives, so no config is to blame.
func (d *decision) beginAnew(c *Case) {
	v := Verdict{Origin: d.v.Origin, Case: c}
	v.after.settle = settlement{all: true} // what died below a suspect for its boots is tried again as well
	d.v, d.again = v, false
	d.choose()
	d.again = true
}
