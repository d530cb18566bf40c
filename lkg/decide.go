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
type Ignored struct {
	Start Start
	Why   string
}

// A Step is a config that was passed over.
type Step struct {
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

	OnTrial   bool      // Use is the current config, and still has to prove itself
	Counted   int       // unexplained starts of the trial
	Threshold int       // of the trial: more than so many reject
	Ignored   []Ignored // starts of the trial that were not counted, and why

	Rejected      *BadEntry // why the current config is avoided, if it is bad
	NewlyRejected bool      // Rejected was found by this decision and must be on record before Use is used

	Steps []Step // what was passed over, in order; the current config first
	Floor Floor  // as it is after this decision
	Alarm string // not empty: nothing is left to fall back to, a person must look

	Condition Condition
	Detail    string // more on the reason, for the log
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
//  5. Its check says undecodable or invalid: it is bad from now on; fall back. Unavailable: fall back.
//  6. It is on trial, and more unexplained starts than its threshold belong to its assignment, besides the first: it is
//     bad from now on; fall back. It is on trial and this start is not on record: fall back.
//  7. Use it.
//
// Falling back means the last known good config, the one before it, or the local one: the first that is not below
// the floor, not listed as bad, OK, and did not itself crash more often than its threshold while it was a fallback.
func Decide(in Input, check func(Ref) Check) Verdict {
	return Verdict{}
}
