// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "strconv"

// suspicion says why r can not be used in that role on account of how its runs ended, or nothing. entry is set if that lists
// r as bad. It opens a case, and moves one on.
func (d *decision) suspicion(role Role, r Ref) (why string, entry *BadEntry) {
	c := d.v.Case
	switch {
	case c.suspects(r) && c.Phase == phaseRetry:
		return d.judgeRetry(role, r)
	case c.suspects(r):
		d.count(c.Counted, d.limits(r).CrashLoopThreshold, role)
		return c.Reason, nil
	}
	if f := c.fallen(r); f != nil {
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

// count shows what is held against the current config.
func (d *decision) count(n, tolerated int, role Role) {
	if role == RoleCurrent {
		d.v.Counted, d.v.Threshold = n, tolerated
	}
}

// judgeRetry judges a suspect that is tried once more.
func (d *decision) judgeRetry(role Role, r Ref) (why string, entry *BadEntry) {
	c, s, l := d.v.Case, &d.in.State, d.limits(r)
	a := d.account(r)
	n := a.n
	if role == RoleCurrent && s.OnTrial() && d.v.after.settle == settleNone {
		n += s.bareStarts()
	}
	if c.Weak {
		n = d.weakEnds(causeReboot, l) + d.weakEnds(causeSupervisor, l)
	}
	d.count(n, c.Tolerated, role)
	if n <= c.Tolerated {
		if c.Weak && role == RoleCurrent {
			return d.suspectCurrent(r), nil // its crashes are counted all the while
		}
		return "", nil
	}
	entry = c.entry(r, c.convictedBy("tried again, ends: "+strconv.Itoa(n)))
	if a.newest != nil && len(a.newest.Last) > 0 {
		entry.Last = a.newest.Last
	}
	entry.Binary = s.Binary
	d.v.Case = c.following()
	return entry.Reason, entry
}

// account is what is held against r in this decision.
func (d *decision) account(r Ref) account {
	if d.v.after.settle == settleAll {
		return account{}
	}
	a := d.in.State.account(r)
	if d.v.after.settle == settleWeak {
		a.same = 0
	}
	return a
}

// weakEnds is what is held against the config on trial in this decision, of that cause.
func (d *decision) weakEnds(cause Cause, l Limits) int {
	if d.v.after.settle != settleNone {
		return 0
	}
	return d.in.State.weakEnds(cause, l)
}

// suspectCurrent says why the current config is left from now on, or nothing, and opens the case.
func (d *decision) suspectCurrent(cur Ref) (why string) {
	s, a := &d.in.State, d.account(cur)
	if !s.OnTrial() && a.n <= fallbackThreshold {
		d.count(a.n, fallbackThreshold, RoleCurrent)
		return ""
	}
	l := d.limits(cur)
	n, tolerated := a.n, max(l.CrashLoopThreshold, fallbackThreshold)
	boots, agent := 0, 0
	if s.OnTrial() {
		tolerated = l.CrashLoopThreshold
		if n, d.v.Ignored = tally(s); d.v.after.settle == settleAll {
			n = 0
		}
		if !d.v.Case.suspects(cur) {
			boots, agent = d.weakEnds(causeReboot, l), d.weakEnds(causeSupervisor, l)
		}
	}
	d.count(n, tolerated, RoleCurrent)
	weak := false
	switch {
	case n > tolerated:
		why = reasonCrashLoop(cur, n, tolerated)
	case boots > weakThreshold:
		why, weak, n = reasonBoots(cur, boots), true, boots
	case agent > weakThreshold:
		why, weak, n = reasonAgent(cur, agent), true, agent
	default:
		return ""
	}
	d.openCase(RoleCurrent, cur, why, n, a)
	if c := d.v.Case; weak {
		c.Weak, c.Witnessed, c.Signature, c.Last = true, false, "", nil
		c.Witness, c.Tolerated = c.Witness*weakFactor, weakThreshold
	}
	d.v.after.settle = d.v.Case.settles()
	return why
}

// openCase opens a case in this decision. What led to it is settled with that.
func (d *decision) openCase(role Role, r Ref, why string, n int, a account) {
	s := &d.in.State
	c := s.newCase(s.usedBy(role, r), d.limits(r), s.longestRun(r))
	c.Reason, c.Counted, c.Witnessed = why, n, a.n > 0 && a.witnessed == a.n
	if a.newest != nil {
		c.Signature, c.Last = a.newest.Signature, a.newest.Last
	}
	d.v.Case, d.v.after.settle = &c, settleAll
}

// crashedBelow says that r, which is used in place of another config, does not live, or nothing. Where its runs end as those
// of the suspect did, fewer ends are enough.
func (d *decision) crashedBelow(r Ref) string {
	a := d.account(r)
	if a.n <= fallbackThreshold && a.same < sameEnds {
		return ""
	}
	if tolerated := max(d.limits(r).CrashLoopThreshold, fallbackThreshold); a.n > tolerated {
		return d.nameBelow(r) + " crashed, " + strconv.Itoa(a.n) + " unexplained restarts, tolerated: " +
			strconv.Itoa(tolerated)
	}
	if a.same >= sameEnds {
		return d.nameBelow(r) + " ended in the same way, " + strconv.Itoa(a.same) + " times"
	}
	return ""
}

// nameBelow names a config that is used in place of another one, or the local one that is assigned.
func (d *decision) nameBelow(r Ref) string {
	if r.IsLocal() && d.in.State.Current.Ref.IsLocal() {
		return "current " + label(r, d.v.Origin)
	}
	return "fallback " + label(r, d.v.Origin)
}

// leaveFallback leaves r for what is below it. Where no case is open, r becomes the suspect of one.
func (d *decision) leaveFallback(role Role, r Ref, why string) {
	c := d.v.Case
	if c != nil && c.Phase != phaseCommon {
		d.v.Case = c.withFallen(d.in.State.usedBy(role, r), why)
		return
	}
	a := d.account(r)
	d.openCase(role, r, why, a.n, a)
}

// beginAnew decides once more, with nothing held against any config: nothing lives, so no config is to blame.
func (d *decision) beginAnew(c *Case) {
	v := Verdict{Origin: d.v.Origin, Case: c}
	v.after.settle = c.settles()
	d.v, d.again = v, false
	d.choose()
	d.again = true
}
