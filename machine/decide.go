// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// waitsForStart is what a machine waits for that has been asked for.
const waitsForStart = "the instance starts"

// notReady is what a machine waits for whose Node was ready before.
const notReady = "the Node is not ready"

// Times between two looks at something that has no event.
const (
	pollInstance = 5 * time.Second
	pollSlow     = 30 * time.Second
)

// Decide says what a machine needs next. It is pure: the same view has the same decision, and whoever is killed after any part of it and looks again
// goes on where it was.
func Decide(v View) Decision {
	p := &pass{View: v, s: v.Machine.Status.clone()}
	p.old = p.s.Failure
	if p.s.Failure != nil && derived(p.s.Failure.Reason) {
		p.s.Failure = nil
	}
	d := p.tidy(p.decide())
	d.Status.Observed = v.Machine.Generation
	return d
}

// expire destroys disks whose time is over, but for those that the present instance is made from.
func (p *pass) expire() (Decision, bool) {
	for _, r := range p.s.Retained {
		if _, waits := p.goesOn(DestroyRetained, r.Token); waits || r.Until.IsZero() || p.Now.Before(r.Until) || r.Token == p.source() || r.Back && !p.Machine.Spec.Decommission {
			continue
		}
		return Decision{Status: p.s, Action: Action{Kind: DestroyRetained, Token: r.Token, Retained: r}}, true
	}
	return Decision{}, false
}

// A pass is one decision under way.
type pass struct {
	View
	s Status
	// old is the failure that was stored.
	old *Failure
}

func (p *pass) decide() Decision {
	m := p.Machine
	switch {
	case len(p.Twins) > 0:
		return p.fail(ReasonDuplicateProviderID, fmt.Sprintf("%s has the same ProviderID %q: neither is touched", p.Twins[0], m.Spec.ProviderID))
	case m.Spec.Paused:
		return p.wait(p.s.Step.Name, "paused by spec.paused", 0)
	case p.ending():
		return p.end()
	}
	if d, due := p.expire(); due {
		return d
	}
	switch {
	case p.s.Phase == PhaseRetired && m.Spec.Decommission:
		return p.gone()
	case p.s.Token == "", p.s.Phase == PhaseRetired:
		return p.intend()
	case p.s.Instance == nil:
		return p.create()
	}
	return p.live()
}

// intend records the next incarnation before anything is asked of the provider.
func (p *pass) intend() Decision {
	m := p.Machine
	if p.Invalid != "" && !p.recoverable() {
		return p.fail(string(provider.InvalidConfig), p.Invalid)
	}
	if !m.Finalizer {
		return Decision{Status: p.s, Action: Action{Kind: SetFinalizer}}
	}
	if p.recoverable() {
		return p.recover()
	}
	if p.Skew != "" {
		return p.fail(ReasonVersionSkew, p.Skew)
	}
	r := p.s.Release
	p.s.Incarnation++
	p.s.Token = provider.Token(p.Cluster, m.UID, p.s.Incarnation)
	p.s.Instance, p.s.Node, p.s.Update, p.s.Release = nil, nil, nil, nil
	p.s.asked(m.Spec.Desired, m.Spec.Digest())
	if r != nil && r.Replace && r.Slot { // it is kept until the new instance works
		p.s.Update = &Update{Digest: p.s.Digest, Plan: provider.Plan{Method: provider.Replace}, Since: p.Now, Slot: true, Loan: r.Loan, Done: true}
	}
	p.s.Phase, p.s.Failure = PhaseProvisioning, nil
	p.step(StepCreating, waitsForStart) // so that it need not be written again while that is so
	return p.store(p.making())
}

// recoverable means that the status is lost, as after a move, and that the ProviderID says which instance there is.
func (p *pass) recoverable() bool {
	return p.s.Incarnation == 0 && provider.TokenOf(p.Machine.Spec.ProviderID) != ""
}

// recover takes the token from the ProviderID. What the instance was made of is for the provider to say; one that can't is believed to have made what
// is wanted.
func (p *pass) recover() Decision {
	p.s.Token = provider.TokenOf(p.Machine.Spec.ProviderID)
	p.s.Incarnation = incarnationOf(p.s.Token)
	p.s.asked(p.Machine.Spec.Desired, p.Machine.Spec.Digest())
	p.s.Phase = PhaseProvisioning
	p.step(StepCreating, waitsForStart)
	return p.store(Action{Kind: Lookup, Token: p.s.Token})
}

// making is the call that makes the instance of the present token.
func (p *pass) making() Action {
	a := Action{Kind: Create, Token: p.s.Token}
	if from := p.source(); from != "" && p.Can.Adopt {
		a.Kind, a.Retained.Token = Adopt, from
	}
	return a
}

// source is the token of the retained instance that the present one is made from: what the spec names, or what a decommissioned machine has left
// that is to come back.
func (p *pass) source() string {
	if p.s.Incarnation <= 1 {
		return p.Machine.Spec.Adopt
	}
	// By its number, not by its whole token: that of a machine that was moved is of another UID.
	if n := len(p.s.Retained); n > 0 && incarnationOf(p.s.Retained[n-1].Token) == p.s.Incarnation-1 && p.s.Retained[n-1].Back {
		return p.s.Retained[n-1].Token
	}
	return ""
}

// create has the instance of a token that was stored, perhaps by somebody who died after that.
func (p *pass) create() Decision {
	p.s.Phase = PhaseProvisioning
	if d, over := p.timedOut(StepCreating, or(p.Create, defaultCreate), ReasonCreateTimeout); over {
		p.s.Failure, p.s.Phase = d, PhaseFailed
	}
	p.phaseOfFailure()
	if p.backingOff() {
		return p.wait(StepCreating, p.why(), p.NotBefore.Sub(p.Now))
	}
	resume := p.Resume && p.Invalid == "" && p.s.Digest == p.Machine.Spec.Digest() // it can't be carried forward with another digest
	if !p.Fresh && !resume && p.Can.Get {
		p.step(StepCreating, p.why())
		return Decision{Status: p.s, Action: Action{Kind: Lookup, Token: p.s.Token}}
	}
	if p.Invalid != "" {
		return p.fail(string(provider.InvalidConfig), p.Invalid)
	}
	p.step(StepCreating, p.why())
	if digest := p.Machine.Spec.Digest(); p.s.Digest != digest {
		p.s.asked(p.Machine.Spec.Desired, digest)
		return p.store(p.making())
	}
	return Decision{Status: p.s, Action: p.making()}
}

// live looks after an instance that is known.
func (p *pass) live() Decision {
	if from := p.source(); from != "" && p.Can.Adopt {
		p.s.forget(from) // the present instance was made from it
	}
	if d, done := p.instance(); done {
		return d
	}
	if d, done := p.settings(); done {
		return d
	}
	// A change comes before the Node: it may be what the machine needs to join.
	if p.changes() {
		return p.broken(p.update())
	}
	if f := p.s.Failure; f != nil && f.Reason == string(provider.InvalidConfig) {
		p.s.Failure = nil // that was of a change which nobody wants any more
	}
	return p.node()
}

// instance is what the provider says; done means that there is nothing to be done beyond.
func (p *pass) instance() (Decision, bool) {
	p.seenInList()
	i := p.s.Instance
	switch {
	case p.Listed == nil && !p.Lists.IsZero() && p.Can.Get && !p.backingOff():
		// A list may be behind. What it lacks is asked for by name.
		return Decision{Status: p.s, Action: Action{Kind: Lookup, Token: p.s.Token}}, true
	case p.s.Failure != nil && p.s.Failure.Reason == ReasonInstanceLost:
		p.s.Phase = PhaseFailed
		return p.wait(p.s.Step.Name, p.s.Failure.Message, 0), true
	case i.ProviderID != "" && i.ProviderID != p.Machine.Spec.ProviderID:
		return Decision{Status: p.s, Action: Action{Kind: SetProviderID, ProviderID: i.ProviderID}}, true
	case i.State == provider.Pending:
		return p.pending(), true
	case i.State != provider.Running && !p.mends(i):
		return p.fail(ReasonInstanceBroken, unable(*i)), true
	}
	return Decision{}, false
}

// mends means that a change is to come, which may end what another one has broken.
func (p *pass) mends(i *provider.Instance) bool { return i.State == provider.Broken && p.changes() }

// changes means that the instance is to become something else, or is on its way.
func (p *pass) changes() bool {
	return p.s.Digest != p.Machine.Spec.Digest() || p.s.Update != nil && !p.s.Update.replaced()
}

// broken says of a decision on a change that the instance is broken as long as it is, whatever else is done.
func (p *pass) broken(d Decision) Decision {
	i := d.Status.Instance
	if i == nil || i.State != provider.Broken || d.Status.Release != nil {
		return d
	}
	if d.Status.Failure == nil {
		d.Status.Failure = p.failure(ReasonInstanceBroken, unable(*i))
	}
	d.Status.Phase = PhaseFailed
	return d
}

// seenInList takes over what the provider's list says.
func (p *pass) seenInList() {
	if p.Listed == nil {
		return
	}
	if differs(*p.s.Instance, *p.Listed) {
		p.s.Instance = p.Listed
	}
	if p.s.Failure != nil && p.s.Failure.Reason == ReasonInstanceLost {
		p.s.Failure = nil
	}
}

// unable is why an instance does not run.
func unable(i provider.Instance) string {
	return strings.TrimSpace(fmt.Sprintf("the instance is %s and can't run. %s", i.State, i.Message))
}

// differs is whether an instance has changed in more than words.
func differs(a, b provider.Instance) bool {
	return a.Token != b.Token || a.ProviderID != b.ProviderID || a.State != b.State || !slices.Equal(a.Addresses, b.Addresses) || !slices.Equal(a.Disks, b.Disks)
}

func (p *pass) pending() Decision {
	p.s.Phase = PhaseProvisioning
	if f, over := p.timedOut(StepCreating, or(p.Create, defaultCreate), ReasonCreateTimeout); over {
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	if p.backingOff() {
		return p.wait(StepCreating, p.why(), p.NotBefore.Sub(p.Now))
	}
	if p.Asked {
		return p.wait(StepCreating, waitsForStart, pollInstance)
	}
	p.step(StepCreating, waitsForStart)
	// A provider may carry a start forward in its calls: Create goes on with one that was cut off, and is as good as a look where there is none.
	if p.s.Digest != p.Machine.Spec.Digest() {
		return p.update() // it can't be carried forward with another digest
	}
	if d := p.s.Instance.Digest; d != "" && d != p.s.Digest && p.Can.Get {
		return Decision{Status: p.s, Action: Action{Kind: Lookup, Token: p.s.Token}} // nor can one that has changed without the provider
	}
	return Decision{Status: p.s, Action: p.making()}
}

// node looks after the Node of an instance that runs.
func (p *pass) node() Decision {
	switch {
	case !p.NodesKnown:
		return p.wait(p.s.Step.Name, "the workload API doesn't answer", pollSlow)
	case len(p.Nodes) > 1:
		return p.fail(ReasonSeveralNodes, fmt.Sprintf("Nodes %q and %q have the same ProviderID", p.Nodes[0].Name, p.Nodes[1].Name))
	case len(p.Nodes) == 0:
		return p.joining()
	}
	n := p.Nodes[0]
	starts := p.starts(n)
	p.s.Node, p.s.Versions = &n.NodeRef, n.Versions
	switch {
	case p.Started != "" && p.s.Step.Name != StepReady:
		return p.starting()
	case starts:
		return Decision{Status: p.s, Action: p.start()}
	case n.Held:
		// Somebody died before he took off the mark of an update that is over.
		return Decision{Status: p.s, Action: Action{Kind: Uncordon}}
	case !n.Ready && p.s.Step.Name != StepReady:
		return p.joiningLate(n)
	case !n.Ready:
		return p.wait(StepReady, notReady, 0)
	}
	if p.s.Update != nil && p.s.Update.replaced() {
		return p.recall()
	}
	p.s.Phase = PhaseRunning
	return p.wait(StepReady, "", p.nextRetained())
}

func (p *pass) joining() Decision {
	p.s.Phase = PhaseJoining
	if f, over := p.timedOut(StepJoining, or(p.Join, defaultJoin), ReasonJoinTimeout); over {
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	why := "no Node has the ProviderID yet"
	if p.s.Node != nil {
		why = fmt.Sprintf("Node %q is gone", p.s.Node.Name)
	}
	return p.wait(StepJoining, why, p.left(StepJoining, or(p.Join, defaultJoin)))
}

func (p *pass) joiningLate(n Node) Decision {
	p.s.Phase = PhaseJoining
	if f, over := p.timedOut(StepStarting, or(p.Join, defaultJoin), ReasonJoinTimeout); over {
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	return p.wait(StepStarting, fmt.Sprintf("Node %q is not ready yet", n.Name), p.left(StepStarting, or(p.Join, defaultJoin)))
}

// starting waits for the checks of the roles. They go on after their time: what they wait for may come.
func (p *pass) starting() Decision {
	p.s.Phase = PhaseJoining
	limit := or(p.Start, defaultStart)
	if f, over := p.timedOut(StepStarting, limit, ReasonStartTimeout); over {
		f.Message += ": " + p.Started
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	after := pollSlow
	if left := p.left(StepStarting, limit); left > 0 {
		after = min(after, left)
	}
	return p.wait(StepStarting, p.Started, after)
}

// incarnationOf is the number at the end of a token; 1 if there is none.
func incarnationOf(token string) int64 {
	n, err := strconv.ParseInt(token[strings.LastIndexByte(token, '-')+1:], 10, 64)
	if err != nil || n < 1 {
		return 1
	}
	return n
}
