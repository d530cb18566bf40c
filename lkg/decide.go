// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// A Policy settles what the rules leave to the operator. The zero value is the safe and usual choice.
type Policy struct {
	// Literal makes every trouble in finding the desired config, also an API server that does not answer, mean
	// "use the last known good config" at a start. By default only a source that is known to be wrong does.
	Literal bool
}

// Input is what one decision rests on.
type Input struct {
	State State
	// Recorded says that the start which asks is on record. Without it a config on trial is not used.
	Recorded bool
	// Limits gives the limits of a config. It is asked only about a config whose check was OK. Nil: zero Limits.
	Limits func(Ref) Limits
	Policy Policy
}

// An Ignored start belongs to the trial and was not counted.
type ignoredStart struct {
	Start Start
	Why   string
}

// A passedOver is a config that was passed over.
type passedOver struct {
	Role Role
	Ref  Ref
	Why  string
}

// A Verdict is which config to use, and why. The zero value is no verdict: its Role is empty.
type Verdict struct {
	Use    Ref
	Role   Role
	Origin Origin // what the local config is made of, whether it is used or not

	// Refuse is set if the local config is not good. Nothing may be used then.
	Refuse *BaselineError

	OnTrial   bool           // Use is the current config, and still has to prove itself
	Counted   int            // ends of one kind that are held against the current config: see Threshold
	Threshold int            // with more it is left
	Ignored   []ignoredStart // starts of the trial that were not counted, and why

	Rejected      *BadEntry // why the current config is avoided, if it is bad
	NewlyRejected bool      // Rejected was found by this decision and must be on record before Use is used

	Steps []passedOver // what was passed over, in order; the current config first
	Case  *Case        // as it is after this decision; nil: no config is under suspicion
	Alarm string       // not empty: nothing is left to fall back to, a person must look

	Condition Condition
	Detail    string // more on the reason, for the log

	after outcomeOf
}

// An outcomeOf a decision is what the Tracker has to do beside the rest of the verdict.
type outcomeOf struct {
	settle settlement // what counts against nothing any more
	bad    *BadEntry  // of a config that is not the current one, found bad by this decision
}

// Decide picks the config to use at a start. It is pure. check(Ref{}) is the local config and is always asked; any
// other config is checked at most once, only if it could be used, and never if it is listed as bad.
//
// The first rule that fits decides:
//
//  1. The local config is not OK: refuse to start.
//  2. The current config is the local one: use it.
//  3. The desired config is known to be wrong (see [OutcomeKind] and [Policy]): fall back.
//  4. The current config is listed as bad: fall back.
//  5. Its check says undecodable or invalid: it is bad from now on; fall back. Unavailable or
//     undecided: fall back.
//  6. It is under suspicion, and avoided: fall back. It is tried once more, and more of its runs ended badly than it
//     tolerates: it is bad from now on; fall back. If these were boots or deaths of the agent, and it was not left for
//     such, it is avoided once more; fall back.
//  7. More unexplained ends than it tolerates are held against it: it is under suspicion from now on; fall back. On
//     trial it tolerates its threshold, and later the larger of that and 3; on trial it tolerates 3 unplanned boots and
//     3 deaths of the agent as well.
//  8. It is on trial, or under suspicion, and this start is not on record: fall back.
//  9. Use it.
//
// Falling back means the last known good config, the one before it, or the local one: the first that is not listed as
// bad, OK, and not itself left for how its runs ended. Where none lives, not even the local one, no config is to blame:
// nothing is listed, everything is forgiven, and the rules begin anew with the current config.
//
// A nil check is one that cannot judge: its answer is CheckUnavailable.
func Decide(in Input, check func(Ref) Check) Verdict {
	if check == nil {
		check = func(Ref) Check { return Check{} }
	}
	local := check(Ref{})
	d := decision{in: in, check: check, v: Verdict{Origin: local.Origin.orDefault(), Case: in.State.openCase()}}
	if local.Outcome != CheckOK {
		d.refuse(local)
		return d.v
	}
	d.choose()
	return d.v
}

// A decision is one in the making.
type decision struct {
	in      Input
	check   func(Ref) Check
	v       Verdict
	current Check // of the current config, once asked
	asked   bool
	again   bool // begun anew: see beginAnew
}

func (d *decision) refuse(local Check) {
	d.v.Refuse = &BaselineError{Origin: d.v.Origin, Outcome: local.Outcome, Err: local.Err}
	d.v.Condition = Condition{StatusFalse, d.v.Refuse.summary(), "using nothing, refusing to start"}
	d.v.Detail = d.v.Refuse.Error()
}

func (d *decision) choose() {
	s := &d.in.State
	cur := s.Current.Ref
	switch {
	case s.CurrentLost:
		d.fallBack(StatusUnknown, reasonUnclear("record \"current\" can not be read"), nil)
	case cur.IsLocal():
		d.useLocal()
	case d.desiredWrong():
		d.fallBack(StatusUnknown, reasonUnclear(s.Desired.cause()), nil)
	default:
		d.judge(cur)
	}
}

func (d *decision) desiredWrong() bool {
	o := d.in.State.Desired
	return o.wrong() || (d.in.Policy.Literal && o.unclear())
}

// useLocal uses the local config because it is assigned. Where the desired source is wrong, it is at the same time what
// there is to fall back to, and reported as such.
func (d *decision) useLocal() {
	s := &d.in.State
	d.v.Role, d.v.Use = RoleCurrent, Ref{}
	d.v.Condition = Condition{StatusTrue, reasonLocal(d.v.Origin), using(RoleCurrent, Ref{}, d.v.Origin)}
	if why := d.crashedBelow(Ref{}); why != "" {
		d.v.Alarm = "nothing is left to fall back to: " + why
		d.v.Condition.Status, d.v.Condition.Reason = StatusFalse, reasonLocalCrashes(d.v.Origin, s.lastStart())
	} else if st := excusedStart(s); st != nil {
		d.v.Condition.Status, d.v.Condition.Reason = StatusUnknown, reasonExcused(st)
	}
	if !s.Desired.unclear() {
		return
	}
	d.v.Condition = d.v.Unclear(s.Desired.cause())
	if d.desiredWrong() && s.LastKnownGood.IsLocal() {
		d.v.Condition.Message = using(RoleLocal, Ref{}, d.v.Origin)
	}
}

// judge applies the rules for a remote current config.
func (d *decision) judge(cur Ref) {
	s := &d.in.State
	if bad := s.BadEntry(cur); bad != nil {
		d.v.Rejected = bad
		if d.v.Case.hasSuspect(cur) { // listed by a start that was cut off, or by a person
			d.v.Case = d.v.Case.nextSuspect()
		}
		d.fallBack(StatusFalse, bad.Reason, nil)
		return
	}
	c := d.ask(cur)
	switch c.Outcome {
	case CheckOK:
	case CheckUndecodable:
		d.refuseCurrent(reasonLoad(cur), c.Err)
		return
	case CheckInvalid:
		d.refuseCurrent(reasonValidate(cur), c.Err)
		return
	case CheckUndecided:
		d.fallBack(StatusUnknown, reasonUndecided(cur, c.Err), nil)
		return
	default:
		d.fallBack(StatusUnknown, reasonUnavailable(cur), c.Err)
		return
	}
	if !d.try(cur) {
		return
	}
	d.useCurrent(cur)
}

// try reports whether the current config may be used by this start. If not, what to use instead is already chosen.
func (d *decision) try(cur Ref) bool {
	if why, bad := d.suspicion(RoleCurrent, cur); bad != nil {
		d.reject(*bad, nil)
		return false
	} else if why != "" {
		d.fallBack(StatusFalse, why, nil)
		return false
	}
	onTrial := d.in.State.OnTrial()
	if c := d.v.Case; !d.in.Recorded && c.hasSuspect(cur) {
		d.fallBack(StatusFalse, c.Reason, nil)
		return false
	}
	if !d.in.Recorded && onTrial {
		d.fallBack(StatusUnknown, reasonUnrecorded(cur), nil)
		return false
	}
	d.v.OnTrial = onTrial
	return true
}

func (d *decision) useCurrent(cur Ref) {
	d.v.Role, d.v.Use = RoleCurrent, cur
	d.v.Condition = Condition{StatusTrue, reasonOK, d.in.State.Current.using()}
	switch st := excusedStart(&d.in.State); {
	case d.v.Case.hasSuspect(cur):
		d.v.Condition.Status, d.v.Condition.Reason = StatusUnknown, reasonRetry(d.v.Case)
	case d.v.Case.isIn(phaseCommon):
		d.v.Condition.Status, d.v.Condition.Reason = StatusUnknown, reasonCommon(d.v.Case, d.v.Origin)
	case st != nil:
		d.v.Condition.Status, d.v.Condition.Reason = StatusUnknown, reasonExcused(st)
	}
	if o := d.in.State.Desired; o.unclear() {
		d.v.Condition = d.v.Unclear(o.cause())
	}
}

// reject finds the current config bad and falls back.
func (d *decision) reject(e BadEntry, cause error) {
	d.v.Rejected, d.v.NewlyRejected = &e, true
	d.fallBack(StatusFalse, e.Reason, cause)
}

// refuseCurrent finds the current config bad by its check.
func (d *decision) refuseCurrent(reason string, cause error) {
	s := &d.in.State
	e := BadEntry{Ref: s.Current.Ref, Reason: reason, Evidence: evidence(0, nil, cause), Binary: s.Binary}
	d.reject(e, cause)
}

func (d *decision) limits(r Ref) Limits {
	if d.in.Limits == nil {
		return Limits{}.effective()
	}
	return d.in.Limits(r).effective()
}

// ask checks r, the current config at most once.
func (d *decision) ask(r Ref) Check {
	if !r.Same(d.in.State.Current.Ref) {
		return d.check(r)
	}
	if !d.asked {
		d.current, d.asked = d.check(r), true
	}
	return d.current
}
