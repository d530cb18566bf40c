// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

const (
	defaultCreate = 20 * time.Minute
	defaultJoin   = 15 * time.Minute
	defaultStart  = 15 * time.Minute
	defaultUpdate = 20 * time.Minute
)

func or(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// step records what the machine is at; the time of a step is that of its beginning.
func (p *pass) step(name StepName, blocker string) {
	if name == "" {
		name = StepPending
	}
	if p.s.Step.Name != name {
		p.s.Step = Step{Name: name, Since: p.Now}
	}
	p.s.Step.Blocker = blocker
	if p.s.Phase == "" {
		p.s.Phase = PhasePending
	}
}

// wait does nothing until something changes, or after that time.
func (p *pass) wait(name StepName, blocker string, after time.Duration) Decision {
	p.step(name, blocker)
	return Decision{Status: p.s, After: max(after, 0)}
}

// store has the status stored before the action.
func (p *pass) store(a Action) Decision { return Decision{Status: p.s, Store: true, Action: a} }

// fail stays where it is, with a reason.
func (p *pass) fail(reason, message string) Decision {
	p.s.Failure = p.failure(reason, message)
	if p.s.Phase != PhaseRetired { // that there is no instance is not to be forgotten
		p.s.Phase = PhaseFailed
	}
	return p.wait(p.s.Step.Name, message, pollSlow) // what is in the way may go without an event of this machine
}

// failure keeps the time since when the same reason holds.
func (p *pass) failure(reason, message string) *Failure {
	f := &Failure{Reason: reason, Message: message, Since: p.Now}
	if p.old != nil && p.old.Reason == reason {
		f.Since = p.old.Since
	}
	return f
}

// timedOut says whether a step takes longer than it may.
func (p *pass) timedOut(name StepName, limit time.Duration, reason string) (*Failure, bool) {
	if p.s.Step.Name != name || p.Now.Sub(p.s.Step.Since) < limit {
		return nil, false
	}
	text := fmt.Sprintf("step %s takes longer than %v", name, limit)
	if p.s.Failure != nil {
		text += ": " + p.s.Failure.Message
	}
	f := p.failure(reason, text)
	f.Since = p.s.Step.Since.Add(limit) // whatever else has failed meanwhile
	return f, true
}

// left is how long a step may still take.
func (p *pass) left(name StepName, limit time.Duration) time.Duration {
	if p.s.Step.Name != name {
		return limit
	}
	return max(p.s.Step.Since.Add(limit).Sub(p.Now), 0)
}

func (p *pass) backingOff() bool { return p.Now.Before(p.NotBefore) }

// goesOn says for how long the provider is not asked for something that it may be at.
func (p *pass) goesOn(kind ActionKind, token string) (after time.Duration, waits bool) {
	for _, poll := range p.Polls {
		if poll.Kind == kind && poll.Token == token {
			after = max(poll.At.Sub(p.Now), 0)
		}
	}
	switch {
	case p.backingOff():
		return max(after, p.NotBefore.Sub(p.Now), pollInstance), true
	case after > 0:
		return after, true
	}
	return pollInstance, p.Asked
}

// why is the failure, in words.
func (p *pass) why() string {
	if p.s.Failure == nil {
		return ""
	}
	return p.s.Failure.Message
}

// phaseOfFailure says Failed where the present spec alone can't get there.
func (p *pass) phaseOfFailure() {
	if f := p.s.Failure; f != nil && needsSomebody(f.Reason) {
		p.s.Phase = PhaseFailed
	}
}

// nextRetained is when the next disks are to be destroyed.
func (p *pass) nextRetained() time.Duration {
	var next time.Duration
	for _, r := range p.s.Retained {
		if r.Until.IsZero() {
			continue
		}
		d := max(r.Until.Sub(p.Now), time.Second)
		if after, waits := p.goesOn(DestroyRetained, r.Token); waits {
			d = max(d, after)
		}
		if next == 0 || d < next {
			next = d
		}
	}
	return next
}

// overridden reports whether somebody has said not to wait for something.
func (p *pass) overridden(what string) bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(p.Machine.Annotations[OverrideAnnotation], " ", ""), ","), what)
}

// derived are the failures that Decide finds itself, and so finds again.
func derived(reason string) bool {
	switch reason {
	case ReasonCreateTimeout, ReasonJoinTimeout, ReasonStartTimeout, ReasonUpdateTimeout, ReasonInstanceBroken, ReasonDuplicateProviderID, ReasonSeveralNodes,
		ReasonUnsupportedChange, ReasonVersionSkew:
		return true
	}
	return false
}

// clone copies what a decision changes.
func (s Status) clone() Status {
	if s.Update != nil {
		u := *s.Update
		u.Overrides = slices.Clone(u.Overrides)
		s.Update = &u
	}
	if s.Release != nil {
		r := *s.Release
		r.Overrides = slices.Clone(r.Overrides)
		s.Release = &r
	}
	s.Retained = slices.Clone(s.Retained)
	s.Strays = slices.Clone(s.Strays)
	return s
}

// needsSomebody are the failures that a machine that is being made does not get over by waiting for seconds.
func needsSomebody(reason string) bool {
	switch reason {
	case string(provider.InvalidConfig), string(provider.Unauthorized), string(provider.Stockout), string(provider.NotSupported),
		ReasonMissingSecret, ReasonCreateTimeout:
		return true
	}
	return false
}
