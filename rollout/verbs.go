// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A Verb is what somebody has asked for last.
type Verb struct {
	// Request is the ID of the request; IDs are not used again. The one that [Progress] has handled changes nothing.
	Request string
	// Do is what is asked for.
	Do Do
	// Node is the name of the node of an Acknowledge.
	Node string
}

// Do is a verb.
type Do string

// Verbs. Which is allowed in which phase is the table that [Verbs] returns.
const (
	Pause       Do = "Pause"
	Resume      Do = "Resume"
	Abort       Do = "Abort"
	Accept      Do = "Accept"
	Promote     Do = "Promote"
	Acknowledge Do = "Acknowledge"
)

// A VerbRule is one line of the table of verbs.
type VerbRule struct {
	Do Do
	In Phase
	// To is the phase that follows, unless the rollout is found to stand elsewhere: at a gate, frozen, completed.
	To Phase
	// Effect says what the verb does, for people.
	Effect string
}

// Phases are all phases of a rollout.
func Phases() []Phase {
	return []Phase{Pending, Running, AtGate, Paused, Frozen, Aborting, Aborted, Completed}
}

// Verbs is the table of what may be asked for in which phase. What it does not list is refused.
func Verbs() []VerbRule {
	var all []VerbRule
	add := func(do Do, to Phase, effect string, in ...Phase) {
		for _, phase := range in {
			rule := VerbRule{Do: do, In: phase, To: to, Effect: effect}
			if to == "" {
				rule.To = phase
			}
			all = append(all, rule)
		}
	}
	add(Pause, Paused, "the ledger is closed for the rollout, grants are revoked, committed nodes finish", Pending, Running, AtGate, Completed)
	add(Resume, Running, "the ledger is opened, the rollout goes on where it stood", Paused, Aborted)
	add(Abort, Aborting, "the ledger is closed for the rollout, grants are revoked, what has not begun to apply is undone, the rest ends",
		Pending, Running, AtGate, Paused, Frozen)
	add(Accept, Running, "the failures so far are accepted: detectors begin anew, broken nodes are quarantined and hold up nobody, the ledger is opened", Frozen)
	add(Promote, "", "the rest of the soak, the gate and the approval of the stage are skipped, and its nodes that cannot be touched are left for later",
		Running, AtGate)
	add(Acknowledge, "", "the slot of a suspect or broken node is freed: its capacity is given up", Phases()...)
	return all
}

func verbRule(do Do, in Phase) (VerbRule, error) {
	var allowed []string
	for _, r := range Verbs() {
		if r.Do == do && r.In == in {
			return r, nil
		}
		if r.Do == do {
			allowed = append(allowed, string(r.In))
		}
	}
	return VerbRule{}, fmt.Errorf("%s is not possible while the rollout is %s: want it %s", do, in, strings.Join(allowed, " or "))
}

// heed does what somebody has asked for, once.
func (p *plan) heed() {
	v := p.policy.Verb
	if v.Request == "" || v.Request == p.progress.Handled {
		return
	}
	p.progress.Handled, p.progress.Refused = v.Request, ""
	rule, err := verbRule(v.Do, p.progress.Phase)
	if err == nil {
		err = p.carryOut(v)
	}
	if err != nil {
		p.progress.Refused = err.Error()
		return
	}
	p.progress.Phase = rule.To
}

func (p *plan) carryOut(v Verb) error {
	switch v.Do {
	case Pause, Abort:
		p.stop(v.Request)
	case Resume:
		p.lift(p.progress.Stopped)
		p.progress.Stopped = ""
	case Accept:
		p.accept()
	case Promote:
		p.progress.Promoted = p.progress.Stage + 1
	case Acknowledge:
		return p.acknowledge(v.Node)
	}
	return nil
}

// stop has the ledger closed by a request. An abort after a pause takes its place.
func (p *plan) stop(request string) {
	if p.progress.Stopped != "" && p.progress.Stopped != request {
		p.lift(p.progress.Stopped)
	}
	p.progress.Stopped = request
	p.unlift(request)
}

// lifted is how many lifted closures are remembered: enough that a controller that has slept through them cannot close the ledger again for good.
const lifted = 16

func (p *plan) lift(request string) {
	if request == "" {
		return
	}
	all := append(slices.Clone(p.progress.Lifted), request)
	p.progress.Lifted = all[max(0, len(all)-lifted):]
}

func (p *plan) unlift(request string) {
	if slices.Contains(p.progress.Lifted, request) {
		p.progress.Lifted = slices.DeleteFunc(slices.Clone(p.progress.Lifted), func(r string) bool { return r == request })
	}
}

// accept begins anew after a freeze, with the failures so far accepted.
func (p *plan) accept() {
	p.lift(p.progress.FrozenBy)
	p.progress.FrozenBy, p.progress.Frozen, p.progress.Rescue = "", "", false
	p.progress.Accepted = len(p.progress.Outcomes)
	for _, uid := range p.remembered() {
		if e := p.progress.Nodes[uid]; e.Failed && !e.Accepted {
			e.Accepted = true
			p.remember(uid, e)
		}
	}
	for _, s := range p.ledger.Slots {
		if s.Rollout != p.policy.UID || s.State == "" {
			continue
		}
		if next, err := p.ledger.Mark(s.UID, protocol.SlotQuarantined); err == nil {
			p.ledger = next.Draft()
		}
	}
}

func (p *plan) acknowledge(node string) error {
	for _, s := range p.ledger.Slots {
		if s.Node != node || s.Rollout != p.policy.UID {
			continue
		}
		sh := protocol.Shadow{Node: s.Node, UID: s.UID}
		if i, here := p.find(s.UID); here {
			sh = p.nodes[i].shadow()
		}
		next, err := p.ledger.Acknowledge(sh)
		if err != nil {
			return err
		}
		p.ledger, p.acknowledged = next.Draft(), s.UID
		e := p.progress.Nodes[s.UID]
		e.Node, e.Attempt, e.Result = s.Node, s.Attempt, Lost
		p.remember(s.UID, e)
		return nil
	}
	for _, uid := range p.remembered() { // the ledger was stored, and the progress was not
		if e := p.progress.Nodes[uid]; e.Node == node && e.flying() && p.ledger.Slot(uid) == nil {
			e.Result = Lost
			p.remember(uid, e)
			return nil
		}
	}
	return fmt.Errorf("node %q has no slot of the rollout", node)
}

// freeze stops the rollout until somebody accepts, aborts or names another revision.
func (p *plan) freeze(by, reason string) {
	if p.progress.Frozen != "" {
		return
	}
	p.progress.Frozen = fmt.Sprintf("%s: %s", by, reason)
	p.progress.FrozenBy = p.closureOf(by)
	p.unlift(p.progress.FrozenBy)
}

// closureOf is the request under which a freeze closes the ledger. The ledger may have been stored, and the progress not: then the freeze is found
// again, maybe after more outcomes and by another detector, and goes on with the closure that it has. A second one would leave the first for good.
func (p *plan) closureOf(by string) string {
	for _, c := range p.ledger.Closures {
		if c.Scope == p.policy.UID && p.isFreeze(c.Request) && c.Request != p.progress.Stopped && !slices.Contains(p.progress.Lifted, c.Request) {
			return c.Request
		}
	}
	for n := len(p.progress.Outcomes); ; n++ {
		request := fmt.Sprintf("%s/%s/%d", by, p.policy.Target.Name, n)
		if !slices.Contains(p.progress.Lifted, request) { // a controller that has slept would open what comes by that name
			return request
		}
	}
}

// isFreeze reports whether a request has the form of those by which a freeze of the target closes the ledger.
func (p *plan) isFreeze(request string) bool {
	i := strings.LastIndexByte(request, '/')
	if i < 0 || !strings.HasSuffix(request[:i], "/"+p.policy.Target.Name) {
		return false
	}
	_, err := strconv.ParseUint(request[i+1:], 10, 63)
	return err == nil
}

// fence makes the closures of the ledger what the progress says. It opens only what was lifted by name: a controller that has slept cannot open what it
// does not know of. For the same reason it closes for a request only when that is stored in the progress: if not, another request might take its
// place, and nobody would know of the closure. Until then nothing is begun either, as [plan.halt] goes by the progress, and the closures stay as they
// are. A freeze is found anew from what has happened, so that its closure comes first.
func (p *plan) fence() {
	scope, stop := p.policy.UID, p.progress.Stopped
	if f := p.progress.FrozenBy; f != "" {
		p.ledger = p.ledger.Close(protocol.Closure{Scope: scope, Request: f, Reason: p.progress.Frozen}).Draft()
	}
	if stop != "" && stop != p.snapshot.Progress.Stopped {
		p.again(time.Millisecond)
		return
	}
	for _, request := range p.progress.Lifted {
		if slices.ContainsFunc(p.ledger.Closures, func(c protocol.Closure) bool { return c.Scope == scope && c.Request == request }) {
			p.ledger = p.ledger.Open(scope, request).Draft()
		}
	}
	if stop != "" {
		p.ledger = p.ledger.Close(protocol.Closure{Scope: scope, Request: stop, Reason: "the rollout is " + strings.ToLower(string(p.progress.Phase))}).Draft()
	}
}

// halt says what keeps the whole rollout from going on by somebody's or some detector's word, or nil.
func (p *plan) halt() *Why {
	switch c := p.ledger.ClosedFor(p.policy.UID); {
	case p.progress.Phase == Aborting, p.progress.Phase == Aborted:
		return p.halted(reasonAborted, "the rollout was aborted by request "+p.progress.Stopped)
	case p.progress.Frozen != "":
		return p.halted(reasonFrozen, p.progress.Frozen)
	case p.progress.Phase == Paused:
		return p.halted(ReasonPaused, "the rollout was paused by request "+p.progress.Stopped)
	case c != nil:
		return p.halted(ReasonClosed, "the ledger is closed by "+c.Request+": "+c.Reason)
	}
	return nil
}

// halted shares one reason among all nodes.
func (p *plan) halted(r Reason, message string) *Why {
	if p.haltWhy == nil || p.haltWhy.Reason != r || p.haltWhy.Message != message {
		p.haltWhy = &Why{Reason: r, Message: message}
	}
	return p.haltWhy
}
