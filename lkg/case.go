// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// A Case is the question whether a config is to blame for the way in which its runs ended. The config is left when the
// case is opened. It is listed as bad only if a config below it lives where it does not.
type Case struct {
	Suspect Used `json:"suspect"`
	// Phase is what is being done: see the phases in the package comment. It is "compare", "retry" or "common".
	Phase  string         `json:"phase"`
	Reason string         `json:"reason"`           // of the condition while the suspect is avoided
	At     time.Time      `json:"at,omitzero"`      // of the phase, by the wall clock; set by the Tracker
	Below  []fallenConfig `json:"below,omitempty"`  // what did not live either, in order
	Rounds int            `json:"rounds,omitempty"` // how often nothing lived

	Assignment string `json:"assignment,omitempty"` // the case ends with this assignment
	Good       string `json:"good,omitempty"`       // and with this State.GoodID

	caseEvidence
	caseTerms
}

// A caseEvidence is what opened a case.
type caseEvidence struct {
	Signature string   `json:"signature,omitempty"` // of the newest end, see [Exit]; empty: unknown
	Last      []string `json:"last,omitempty"`      // lines of the newest end, see [Exit]
	Counted   int      `json:"counted,omitempty"`   // ends for which the suspect is avoided
	Probe     bool     `json:"probe,omitempty"`     // a required probe failed for too long
	Witnessed bool     `json:"witnessed,omitempty"` // each of them was: see [Exit]
	Weak      bool     `json:"weak,omitempty"`      // ends of the machine or of the agent, which have many causes
}

// A caseTerms is what decides a case.
type caseTerms struct {
	// Witness is for how long a config below must be healthy before the suspect is tried again. Acquit is for how long the
	// suspect must be healthy then.
	Witness time.Duration `json:"witness,omitempty"`
	Acquit  time.Duration `json:"acquit,omitempty"`
	// Short is the least healthy time that may show something. All tries of a suspect for weak evidence are shorter.
	Short time.Duration `json:"short,omitempty"`
	// Again says that the suspect was compared a second time, for weak ends in its second try. A third time there is none.
	Again bool `json:"again,omitempty"`
}

// A fallenConfig is a config below a suspect that did not live either.
type fallenConfig struct {
	Used Used   `json:"used"`
	Why  string `json:"why"`
	fallenFor
}

// A fallenFor is what a config fell for, if not for crashes. See [Case].
type fallenFor struct {
	Weak  bool `json:"weak,omitempty"`
	Probe bool `json:"probe,omitempty"`
}

// The phases of a case.
const (
	phaseCompare = "compare" // the suspect is avoided, and what is below it is watched
	phaseRetry   = "retry"   // something below lived: the suspect is tried once more
	phaseCommon  = "common"  // nothing lived: no config is to blame, and the wanted one is used again
)

const (
	// sameEnds is how many ends with the signature of the suspect show that a config below does not live either.
	sameEnds = 2
	// weakThreshold is how many unplanned boots, or deaths of the agent, are tolerated in short runs.
	weakThreshold = 3
	// weakFactor makes a witness against weak evidence live for longer than all tries of the suspect together.
	weakFactor = 2 * (weakThreshold + 1)
	// minWitness is the least healthy run of a witness, unless the suspect asks for less itself.
	minWitness = time.Minute
	// maxForgive is the longest healthy run that is needed in order to forgive the ends of earlier runs.
	maxForgive = time.Hour
)

// openCase is the case that still holds, or nil. It ends with a new last known good config, and with the assignment
// that it was opened in, unless its suspect is a config to fall back to.
func (s *State) openCase() *Case {
	c := s.Case
	if c == nil || c.Good != s.GoodID {
		return nil
	}
	if c.Assignment == s.Current.ID || c.Suspect.is(s.LastKnownGood) || c.Suspect.is(s.Previous) {
		return c
	}
	return nil
}

// keepCase is what is left of the case under the present records: that of an assignment which is over goes on with what
// fell below it.
func (s *State) keepCase() {
	c := s.Case
	if s.openCase() != nil || c == nil {
		return
	}
	s.Case = nil
	if c.Good == s.GoodID {
		s.Case = c.nextSuspect()
	}
}

// isWhole reports whether a case that was read from a record can be acted on. Without a case the suspect is tried
// again.
func (c *Case) isWhole() bool {
	known := c.Phase == phaseCompare || c.Phase == phaseRetry || c.Phase == phaseCommon
	counts := c.Rounds >= 0 && c.Counted >= 0
	return known && counts && c.Suspect.Role != "" && c.Reason != "" && c.Witness > 0 && c.Acquit > 0
}

// multiplyDuration is d times n, or the longest duration there is.
func multiplyDuration(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

// isIn reports whether the case is in that phase. That of nil is in none.
func (c *Case) isIn(phase string) bool { return c != nil && c.Phase == phase }

// hasSuspect reports whether r is under suspicion and avoided, or tried once more.
func (c *Case) hasSuspect(r Ref) bool { return c != nil && c.Phase != phaseCommon && c.Suspect.is(r) }

// findFallen is what is known against r, which is below the suspect, or nil.
func (c *Case) findFallen(r Ref) *fallenConfig {
	if c == nil || c.Phase == phaseCommon {
		return nil
	}
	for i := range c.Below {
		if c.Below[i].Used.is(r) {
			return &c.Below[i]
		}
	}
	return nil
}

// whyLowest is why the lowest config that fell was left, or nothing.
func (c *Case) whyLowest() string {
	switch {
	case c == nil || c.Phase == phaseCommon:
		return ""
	case len(c.Below) > 0:
		return c.Below[len(c.Below)-1].Why
	case c.Suspect.fallback():
		return c.Reason
	default:
		return ""
	}
}

// withFallen is the case with one more config that did not live.
func (c *Case) withFallen(u Used, why string, what fallenFor) *Case {
	next := *c
	next.Below = append(slices.Clone(c.Below), fallenConfig{u, why, what})
	return &next
}

// withPhase is the case in another phase.
func (c *Case) withPhase(phase string) *Case {
	next := *c
	next.Phase = phase
	if phase == phaseCommon {
		next.Rounds++
	}
	return &next
}

// nextSuspect is the case after its suspect was listed as bad: the first of those that fell below it is the next
// suspect, as a config below that one lives. It is nil if none fell.
func (c *Case) nextSuspect() *Case {
	if c == nil || len(c.Below) == 0 || c.Phase == phaseCommon {
		return nil
	}
	next, first := *c, c.Below[0]
	next.Suspect, next.Reason, next.Below = first.Used, first.Why, c.Below[1:]
	next.Phase, next.Witnessed, next.Again = phaseCompare, false, false
	next.Weak, next.Probe = first.Weak, first.Probe
	next.Signature, next.Last, next.Counted = "", nil, 0
	if first.Weak && !c.Weak {
		next.Witness = max(next.Witness, multiplyDuration(next.Short, weakFactor))
	}
	return &next
}

// badEntry is what lists the suspect r as bad.
func (c *Case) badEntry(r Ref, evidence string) *BadEntry {
	return &BadEntry{Ref: r, Reason: c.Reason, Evidence: evidence, Signature: c.Signature, Last: c.Last}
}

// convictedBy is the evidence of a case that ends with the rejection of its suspect.
func (c *Case) convictedBy(again string) string {
	text := "counted starts: " + strconv.Itoa(c.Counted) + "; the config in its place was healthy for " +
		c.Witness.String()
	for _, f := range c.Below {
		text += "; " + f.Why
	}
	return text + "; " + again
}

// newCase opens a case against r. l are the limits of r; longest is its longest healthy run.
func (s *State) newCase(u Used, l Limits, longest time.Duration) Case {
	c := Case{
		Suspect: u, Phase: phaseCompare, Assignment: s.Current.ID, Good: s.GoodID, caseTerms: termsOf(s, u, l, longest),
	}
	if old := s.openCase(); old != nil {
		c.Rounds = old.Rounds
		if old.Phase != phaseCommon && !old.Suspect.is(u.toRef()) {
			c.Below = append([]fallenConfig{{old.Suspect, old.Reason, fallenFor{old.Weak, old.Probe}}}, old.Below...)
		}
	}
	return c
}

// termsOf are the terms of a case against u.
func termsOf(s *State, u Used, l Limits, longest time.Duration) caseTerms {
	needed := outliveRun(longest)
	short := min(needed, l.MinHealthyRun)
	witness := short
	if usual := outliveRun(usualRunOf(s, u.toRef())); usual-minWitness > l.MinHealthyRun {
		witness = usual // what lives as long as the suspect did shows nothing
	}
	acquit := min(max(needed, l.MinHealthyRun), max(l.Trial, maxForgive))
	return caseTerms{Short: short, Witness: witness, Acquit: acquit}
}

// longestRunOf is the longest healthy run of r that ended by a crash, a boot or a death of the agent, as far as the
// starts tell. What is settled tells as well.
func longestRunOf(s *State, r Ref) (longest time.Duration) {
	for i := range s.Starts {
		st := &s.Starts[i]
		if st.After.is(r) && (st.Cause.unexplained() || st.Cause.isWeak()) {
			longest = max(longest, st.Lived)
		}
	}
	return longest
}

// usualRunOf is the longest but one of the healthy runs of r that ended by a crash, a boot or a death of the agent, of
// those that still count. A config that lived for long before it broke is so told from one that ends now and then.
func usualRunOf(s *State, r Ref) (second time.Duration) {
	var longest time.Duration
	for i := range s.Starts {
		st := &s.Starts[i]
		if !st.Settled && st.After.is(r) && (st.Cause.unexplained() || st.Cause.isWeak()) {
			second = max(second, min(longest, st.Lived))
			longest = max(longest, st.Lived)
		}
	}
	return second
}

// outliveRun is how long a healthy run must be in order to differ from runs that ended after that long.
func outliveRun(longest time.Duration) time.Duration {
	return min(multiplyDuration(longest, 2), maxForgive) + minWitness
}

// forgivingRun is the healthy run that forgives the ends of earlier runs of r.
func forgivingRun(s *State, r Ref, trial time.Duration) time.Duration {
	return min(max(trial, outliveRun(longestRunOf(s, r))), maxForgive)
}

// An account is what is held against one config.
type account struct {
	n         int // unexplained ends of its runs
	same      int // of those, with the signature of the open case
	witnessed int
	newest    *Start // that tells of the newest such end
}

// accountFor counts what is held against r, in any role, since there is this last known good config. Ends that were
// settled, by a healthy run or by a case, are not held against it any more.
func accountFor(s *State, r Ref) (a account) {
	c := s.openCase()
	for i := range s.Starts {
		st := &s.Starts[i]
		if st.Settled || st.Good != s.GoodID || !hasRun(s, st, r) {
			continue
		}
		switch {
		case st.Cause.unexplained():
			a.addEnd(st)
			if c.isIn(phaseCompare) && c.Signature != "" && c.Signature == st.Signature {
				a.same++
			}
		case c.isIn(phaseCompare) && c.Weak && st.Cause.isWeak():
			a.same++ // since the case was opened: what came before is settled
		}
	}
	return a
}

// hasRun reports whether the run before a start used r. Where that is not on record, it was the config that is
// assigned.
func hasRun(s *State, st *Start, r Ref) bool {
	if st.After.Role == "" {
		return st.N > 1 && st.Assignment == s.Current.ID && r.Same(s.Current.Ref)
	}
	return st.After.is(r)
}

// countBareStarts counts the starts without evidence. A case settles those from before it.
func countBareStarts(s *State) (n int) {
	for i := range s.Starts {
		if !s.Starts[i].evidenced() {
			n++
		}
	}
	return n
}

// excusedStart is the present start, if the end before it was not by the config, and nothing has been healthy
// since; or nil.
func excusedStart(s *State) *Start {
	last := s.lastStart()
	if last == nil || s.Soak.Last == soakHealthy || (last.Cause != causeNotExecuted && last.Cause != causeEnvironment) {
		return nil
	}
	return last
}

func (a *account) addEnd(st *Start) {
	a.n, a.newest = a.n+1, st
	if st.Witnessed {
		a.witnessed++
	}
}

// isWeak reports whether a start of this cause is weak evidence against what ran before it.
func (c Cause) isWeak() bool { return c == causeReboot || c == causeSupervisor }

// mayHaveWeakEnds reports whether it is worth asking for the limits, which say what a short run is.
func mayHaveWeakEnds(s *State) bool {
	n := 0
	for i := range s.Starts {
		if st := &s.Starts[i]; !st.Settled && st.Cause.isWeak() {
			n++
		}
	}
	return n > weakThreshold
}

// countWeakEnds counts the ends of short runs of r, in any role, that a start of that cause tells of.
func countWeakEnds(s *State, cause Cause, r Ref, l Limits) (n int) {
	for i := range s.Starts {
		st := &s.Starts[i]
		if !st.Settled && st.Good == s.GoodID && st.Cause == cause && hasRun(s, st, r) && st.Lived < l.MinHealthyRun {
			n++
		}
	}
	return n
}

// A settlement says which starts count against nothing any more: none, if it is zero.
type settlement struct {
	all     bool
	spare   []Used // some ends of these go on counting:
	crashes bool   // those that are not weak
	weak    bool   // boots and deaths of the agent
}

// settlesWhat is what a change of the case settles. The ends of its suspect that it is not about go on counting.
func (c *Case) settlesWhat() settlement {
	return settlement{all: true, spare: []Used{c.Suspect}, crashes: c.Weak, weak: !c.Weak}
}

// coversCrashes reports whether no crash of r counts any more.
func (w settlement) coversCrashes(r Ref) bool {
	return w.all && (!w.crashes || !slices.ContainsFunc(w.spare, func(u Used) bool { return u.is(r) }))
}

// sparesStart reports whether a start goes on counting.
func (w settlement) sparesStart(s *State, st *Start) bool {
	return (w.crashes && !st.Cause.isWeak() || w.weak && st.Cause.isWeak()) &&
		slices.ContainsFunc(w.spare, func(u Used) bool { return hasRun(s, st, u.toRef()) })
}

// settleStarts makes starts so far count against nothing any more. It reports whether that changed one.
func (s *State) settleStarts(which settlement) (changed bool) {
	for i := range s.Starts {
		st := &s.Starts[i]
		if st.Settled || !which.all || which.sparesStart(s, st) {
			continue
		}
		if !st.evidenced() {
			st.N = 2 // it has evidence from now on, and belongs to no assignment
		}
		st.Settled, changed = true, true
	}
	return changed
}
