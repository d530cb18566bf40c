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
	// Below says that the probe asks for what every config needs, such as the container runtime. While one fails, the time
	// counts neither for the config nor against it, whether it is required or not. More than MaxElapsed of such time has
	// the healthy run begin anew that a promotion asks for.
	Below bool
	// Unknown says that there was no answer: Err is why. A required probe without an answer neither passes nor fails: the
	// time is taken as where a probe with Below fails.
	Unknown bool
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
type progressResult string

// The results. The zero value means that nothing is on trial or under suspicion in this run.
const (
	resultIdle     progressResult = ""
	resultWait     progressResult = "Wait"     // still on trial, or under suspicion
	ResultPromoted progressResult = "Promoted" // the config is the last known good one now
	ResultRejected progressResult = "Rejected" // a config is listed as bad; restart if it is in use
	ResultRestart  progressResult = "Restart"  // the next start uses another config: restart
)

// Progress is how far a trial or a case is, after a report.
type Progress struct {
	Result   progressResult
	Why      string     // what is missing, or what decided
	Soak     soakRecord // after the report
	Limits   Limits     // that were applied, defaults filled in
	Rejected *BadEntry  // set with ResultRejected
	Case     *Case      // after the report; nil: no config is under suspicion

	settle settlement // what counts against nothing any more
}

// judgeHealth judges the running config after a health report. It is pure: the Tracker writes what it says. The limits
// are those of the running config.
//
// A config on trial is promoted when its healthy time is longer than Limits.Trial (equal is still on trial), the
// present run was healthy without a break for Limits.MinHealthyRun, and every required probe passes in this report. The
// time between two reports is healthy if both are.
//
// A config comes under suspicion when a required probe failed without a break for longer than Limits.ProbeDeadline, on
// trial, after it, or as a fallback. If it was avoided and is tried once more, it is rejected then. What runs below a
// suspect is a witness against it when it was healthy for Case.Witness; a suspect that is healthy for Case.Acquit is
// not to blame. Healthy time of the trial, and of twice the longest run that ended badly, but at most of an hour,
// forgives the ends of earlier runs. These times are added up over planned restarts.
func judgeHealth(s State, l Limits, h Health) Progress {
	p := Progress{Limits: l.effective(), Soak: s.Soak, Case: s.openCase()}
	last := s.lastStart()
	if last == nil || last.Used.Role == "" {
		p.Why = "it is not on record what runs"
		return p
	}
	r, runs := last.Used.toRef(), s.running()
	if bad := s.BadEntry(r); bad != nil && runs {
		p.Result, p.Why, p.Rejected = ResultRejected, bad.Reason, bad
		return p
	}
	if last.Used.Role == RoleCurrent && !runs {
		p.Why = "another config is assigned than the one that runs"
		return p
	}
	failing := h.failing()
	p.Soak = s.Soak.after(&s, h, h.answer(failing), runs && s.OnTrial())
	switch {
	case p.Case != nil && judgeCase(&p, &s, last.Used, failing):
	case p.isSick():
		p.suspectRunning(&s, last.Used, failing)
	case runs && s.OnTrial():
		p.judge(failing)
	default:
		p.Why = "the config in use is not on trial"
		if mayForgive(&s, last) && p.Soak.Sum > forgivingRun(&s, r, p.Limits.Trial) {
			p.settle = settlement{all: true}
		}
	}
	return p
}

// mayForgive reports whether a start is on record that a long healthy run settles.
func mayForgive(s *State, last *Start) bool {
	return hasUnsettled(s) || last.Used.fallback() && !last.Settled
}

// isSick reports whether a required probe failed for too long. Where nothing lives it takes longer each time.
func (p *Progress) isSick() bool {
	deadline := p.Limits.ProbeDeadline
	if p.Case.isIn(phaseCommon) {
		deadline = multiplyDuration(deadline, 1<<min(p.Case.Rounds, maxDoublings))
	}
	return p.Soak.Last == soakFailing && p.Soak.Failing > deadline
}

// maxDoublings bounds how long a config is kept that fails its probes as what is below it does: 5 min becomes 21 h.
const maxDoublings = 8

// judgeCase moves an open case on. It reports whether that is all there is to say.
func judgeCase(p *Progress, s *State, used Used, failing string) (done bool) {
	c := p.Case
	suspect := c.Suspect.is(used.toRef())
	switch {
	case !suspect && !used.fallback() && c.Phase != phaseCommon:
		return false // what runs is not below the suspect
	case c.Phase == phaseCommon:
		if suspect && p.Soak.timeFor(c) >= c.Acquit || !suspect && p.Soak.timeFor(c) >= min(c.Witness, c.Acquit) {
			// what lived may still end now and then, and the suspect too
			p.Case, p.settle = nil, settlement{all: true, spare: []Used{used, c.Suspect}, crashes: true, weak: true}
		}
		return false
	case suspect && c.Phase == phaseRetry:
		return judgeSecondTry(p, s, failing)
	case suspect:
		p.Result, p.Why = ResultRestart, c.Reason
	default:
		judgeWitness(p, used, failing)
	}
	return true
}

// judgeSecondTry judges a suspect that is tried once more. It reports whether that is all there is to say.
func judgeSecondTry(p *Progress, s *State, failing string) (done bool) {
	c := p.Case
	switch {
	case p.isSick():
		p.convictSuspect(s, c, "tried again, required probe "+strconv.Quote(failing)+" failed for more than "+
			p.Limits.ProbeDeadline.String())
	case s.running() && s.OnTrial():
		return false // the promotion ends the case, also where Acquit is longer
	case p.Soak.timeFor(c) >= c.Acquit:
		p.acquitSuspect()
		return false
	default:
		p.Result = resultWait
		p.Why = "under suspicion, healthy for " + p.Soak.timeFor(c).String() + ", needed: " + c.Acquit.String()
	}
	return true
}

// judgeWitness judges what runs below a suspect.
func judgeWitness(p *Progress, used Used, failing string) {
	c := p.Case
	switch {
	case p.isSick():
		leaveBelow(p, used, failing)
	case c.Phase == phaseRetry: // it runs as the suspect could not be had
		p.Result, p.Why = resultWait, "the suspect is to be tried again: "+c.Reason
	case p.Soak.timeFor(c) < c.Witness:
		p.Result = resultWait
		p.Why = "what runs was healthy for " + p.Soak.timeFor(c).String() + ", needed as a witness: " + c.Witness.String()
	default:
		p.Case, p.settle, p.Soak.Accumulated = c.withPhase(phaseRetry), c.settlesWhat(), 0
		if c.Weak && !c.Again {
			p.settle = settlement{all: true} // crashes before a case about boots were few
		}
		p.Result, p.Why = ResultRestart, "trying again what is under suspicion: "+c.Reason
	}
}

// acquitSuspect ends a case without blame. A suspect of boots was healthy for a while: that forgives no crash.
func (p *Progress) acquitSuspect() {
	p.Case, p.settle = nil, settlement{all: true, spare: []Used{p.Case.Suspect}, crashes: p.Case.Weak}
}

// convictSuspect lists the suspect as bad.
func (p *Progress) convictSuspect(s *State, c *Case, how string) {
	p.Rejected = c.badEntry(fullRef(s, c.Suspect), c.convictedBy(how))
	p.Result, p.Why, p.Case, p.settle = ResultRejected, c.Reason, c.nextSuspect(), settlement{all: true}
}

// leaveBelow leaves a config below a suspect that is not healthy either.
func leaveBelow(p *Progress, used Used, failing string) {
	name := "fallback " + label(used.toRef(), "")
	if used.toRef().IsLocal() {
		name = "the local config"
	}
	c := p.Case.withFallen(used, name+" failed required probe "+strconv.Quote(failing), fallenFor{Probe: true})
	if used.toRef().IsLocal() {
		c, p.settle = c.withPhase(phaseCommon), settlement{all: true}
	}
	p.Case, p.Result, p.Why = c, ResultRestart, c.Below[len(c.Below)-1].Why
	p.Soak = p.Soak.nextRun()
}

// suspectRunning opens a case against what runs, unless there is nothing below it.
func (p *Progress) suspectRunning(s *State, used Used, failing string) {
	r := used.toRef()
	p.Why = reasonProbe(used, failing, p.Limits.ProbeDeadline)
	if r.IsLocal() {
		return
	}
	c := s.newCase(used, p.Limits, max(longestRunOf(s, r), p.Soak.Longest))
	c.Reason, c.Signature, c.Probe = p.Why, "required probe "+strconv.Quote(failing)+" fails", true
	p.Case, p.settle, p.Result = &c, settlement{all: true}, ResultRestart
}

// hasUnsettled reports whether a start may still count against something.
func hasUnsettled(s *State) bool {
	for i := range s.Starts {
		st := &s.Starts[i]
		if !st.Settled && st.Good == s.GoodID && st.After.Role != "" && (st.Cause.unexplained() || st.Cause.isWeak()) {
			return true
		}
	}
	return false
}

// judge compares the soak of a config on trial with its limits.
func (p *Progress) judge(failing string) {
	l, k := p.Limits, p.Soak
	switch {
	case k.Last == soakFailing:
		p.Result, p.Why = resultWait, "required probe "+strconv.Quote(failing)+" fails"
	case k.Last == soakUnknown:
		p.Result, p.Why = resultWait, "a required probe gave no answer, or what every config needs is not there"
	case k.Accumulated <= l.Trial:
		p.Result, p.Why = resultWait, "healthy for "+k.Accumulated.String()+", needed: more than "+l.Trial.String()
	case k.Run < l.MinHealthyRun:
		p.Result, p.Why = resultWait, "this run is healthy for "+k.Run.String()+", needed: "+l.MinHealthyRun.String()
	default:
		p.Result, p.Why = ResultPromoted, "healthy for "+k.Accumulated.String()
	}
}

// after is the soak with one more report, whose answer is soakHealthy, soakFailing or soakUnknown. The first report of
// a run speaks for the time since the start. Time without an answer counts for nothing. It breaks nothing but Run.
func (k soakRecord) after(s *State, h Health, answer string, onTrial bool) soakRecord {
	if k.Assignment != s.Current.ID {
		k = soakRecord{Assignment: s.Current.ID, Sum: k.Sum, Failed: k.Failed, lived: k.lived}
	}
	k.BootID = s.BootID
	before, elapsed := k.Last, h.elapsed()
	k = k.withAnswer(h, answer)
	switch {
	case answer == soakUnknown:
	case answer == soakFailing:
		k.Run, k.spell = 0, 0
		if before != soakHealthy { // no answer in between is no healthy one
			k.Failing, k.Failed = k.Failing+elapsed, k.Failed+elapsed
		}
	default:
		k.Failing = 0
		if before == "" || before == soakHealthy {
			k.Run, k.spell, k.Sum = k.Run+elapsed, k.spell+elapsed, k.Sum+elapsed
			k.Longest = max(k.Longest, k.spell)
			if onTrial {
				k.Accumulated += elapsed
			}
		}
	}
	return k
}

// withAnswer is the soak with the newest answer. Where reports without an answer are between two that have one, more
// than MaxElapsed may hide a failure: Run begins anew.
func (k soakRecord) withAnswer(h Health, answer string) soakRecord {
	if answer == soakUnknown || k.Last == soakUnknown {
		k.Unknown += min(max(h.Elapsed, 0), 2*MaxElapsed) // more tells no more
	}
	if k.Unknown > MaxElapsed {
		k.Run = 0
	}
	if k.Last = answer; answer != soakUnknown {
		k.Unknown = 0
	}
	return k
}

// nextRun is the soak at a new start: what was added up stays, the run begins anew.
func (k soakRecord) nextRun() soakRecord {
	k.lived = max(k.lived, k.Longest)
	k.Run, k.spell, k.Longest, k.Failing, k.Unknown, k.Last = 0, 0, 0, 0, 0, ""
	return k
}

// timeFor is how long what runs was healthy, for a case about it or about the suspect above it. In a case about a
// probe, the time in which a probe failed is subtracted.
func (k soakRecord) timeFor(c *Case) time.Duration {
	if c.Probe {
		return k.Sum - k.Failed
	}
	return k.Sum
}

func (h Health) elapsed() time.Duration { return min(max(h.Elapsed, 0), MaxElapsed) }

// answer is that of all probes together. A probe that has no answer hides none that fails; one that looks below the
// config does.
func (h Health) answer(failing string) string {
	unknown := false
	for _, p := range h.Probes {
		if p.Err != nil && p.Below {
			return soakUnknown
		}
		unknown = unknown || p.Err != nil && p.Required && p.Unknown
	}
	switch {
	case failing != "":
		return soakFailing
	case unknown:
		return soakUnknown
	default:
		return soakHealthy
	}
}

// failing is the name of the first required probe that fails, or nothing.
func (h Health) failing() string {
	for _, p := range h.Probes {
		if p.Required && p.Err != nil && !p.Unknown && !p.Below {
			return cmp.Or(p.Name, "unnamed")
		}
	}
	return ""
}
