// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/rollout/protocol"
)

// What a zero setting means.
const (
	defaultAttempts = 3
	defaultRetry    = time.Minute
	defaultCommit   = 5 * time.Minute
	defaultDrain    = time.Hour
	defaultApply    = 30 * time.Minute
	defaultVerify   = 30 * time.Minute
	longestRetry    = time.Hour
	// healed is how long a node has run a revision after which its failures with it before that have no say in how often it may fail.
	healed = 24 * time.Hour
	// keptCycles is how many cycles are remembered.
	keptCycles = 100
)

func (p *plan) attempts() int {
	if p.policy.Attempts == 0 {
		return defaultAttempts
	}
	return p.policy.Attempts
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// backOff is how long a node rests after so many failures: up to the base, doubled with each but the first, jittered in full by node
// and number, so that nodes that failed together don't come back together.
func backOff(base time.Duration, uid string, failures int) time.Duration {
	base = backoff.After(failures-1, base, max(base, longestRetry))
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", uid, failures)
	return base/100 + time.Duration(h.Sum64()%uint64(base-base/100+1))
}

// conclude remembers how an attempt has ended. An attempt can end twice: a suspect node may come back.
func (p *plan) conclude(f *flight, e *NodeProgress, r Result) {
	if e.Result == r {
		return
	}
	first := e.Result == ""
	e.Result = r
	counts := p.counts(f)
	base := orDefault(p.policy.RetryAfter, defaultRetry)
	switch {
	case detectFailed(r):
		if first {
			e.Attempts++
			p.rest(e, backOff(base, f.slot.UID, e.Attempts))
		}
		if counts {
			e.Failed = true
			p.outcome(f, *e)
		}
		if counts && first && e.Critical {
			p.freeze("critical", fmt.Sprintf("node %q is critical, and has ended as %s", f.slot.Node, r))
		}
	case r == Succeeded:
		if counts {
			e.Stage, e.Recovered = p.progress.Stage, e.Failed
			p.progress.Rescue = false
			p.outcome(f, *e)
			p.measure(e.Admitted)
		}
	case first:
		e.Deferrals++
		p.rest(e, backOff(base, f.slot.UID, e.Deferrals))
	}
}

func (p *plan) rest(e *NodeProgress, d time.Duration) {
	e.NotBefore = p.now.Add(d)
	p.again(d)
}

// counts reports whether an attempt is one with the revision that its node's group should get: others are no evidence of that one. Of
// a node that has lost its record it is not known; it counts.
func (p *plan) counts(f *flight) bool {
	if f.member < 0 {
		return true
	}
	if f.sh.Orders.Revert && f.sh.Orders.Grant == f.slot.Attempt {
		return false
	}
	m, r := &p.nodes[f.member], f.ordered()
	if m.group < 0 {
		return p.policy.Unfollowed && slices.Contains(p.progress.Targets, r)
	}
	return r.Name == "" || r == p.targets[m.group].target.Ref()
}

// ending is about how many attempts end in this pass, and at least 1.
func (p *plan) ending() int {
	n := 1
	for i := range p.flights {
		if s := p.flights[i].state; s == protocol.Done || s == protocol.FailedClean || s == protocol.FailedBroken {
			n++
		}
	}
	return n
}

func (p *plan) measure(admitted time.Time) {
	if d := p.now.Sub(admitted); !admitted.IsZero() && d > 0 {
		all := append(slices.Clone(p.progress.Cycles), d)
		p.progress.Cycles = all[max(0, len(all)-keptCycles):]
	}
}

// detect asks the detectors about the outcomes since the last that were accepted.
func (p *plan) detect() {
	outcomes := p.progress.Outcomes[min(p.progress.Accepted, len(p.progress.Outcomes)):]
	if len(outcomes) == 0 || p.progress.Frozen != "" {
		return
	}
	for _, d := range detectWith(p.policy.Detectors) {
		if reason, tripped := d.Trips(slices.Clip(outcomes), p.sizes.selected); tripped {
			p.freeze(d.Name(), reason)
			return
		}
	}
}

// missing ends the attempts of nodes that have no slot any more: their outcome was not stored when it was freed, or somebody else has freed it.
func (p *plan) missing() {
	for _, uid := range p.remembered() {
		e := p.progress.Nodes[uid]
		i, here := p.find(uid)
		slotted := here && p.nodes[i].slotted() || uid == p.acknowledged || !here && p.snapshot.Ledger.Slot(uid) != nil
		switch {
		case slotted:
		case !here && e.flying() && disrupts(e.State):
			p.conclude(&flight{slot: protocol.Slot{Node: e.Node, UID: uid}, member: -1}, &e, Lost)
			p.forget(uid)
		case !here:
			p.forget(uid)
		case e.flying():
			p.freed(i, e)
		}
	}
}

// flying reports whether the node had a slot when it was remembered.
func (e *NodeProgress) flying() bool { return !e.Admitted.IsZero() }

// disrupts reports whether a node in a state is disrupted, as far as anybody knows.
func disrupts(s protocol.State) bool {
	return slices.Contains([]protocol.State{
		protocol.Committed, protocol.Undoing, protocol.Proceeding, protocol.Applying, protocol.Verifying, protocol.FailedBroken, protocol.Retrying,
		protocol.Unknown,
	}, s)
}

// freed ends the attempt of a node that is there and has no slot.
func (p *plan) freed(i int32, e NodeProgress) {
	m := &p.nodes[i]
	sh := m.shadow()
	f := &flight{slot: protocol.Slot{Node: m.node.Name, UID: m.node.UID, Attempt: e.Attempt}, member: i, sh: &sh}
	if r, ended := resultOf(sh, e.Attempt); ended {
		p.conclude(f, &e, r)
	}
	p.land(f, e)
}

// resultOf is how an attempt has ended, by the shadow; false if the node is still in it.
func resultOf(sh protocol.Shadow, k protocol.Attempt) (Result, bool) {
	if sh.Report.Attempt < k {
		return Deferred, sh.Report.Phase.AtRest()
	}
	switch sh.Report.Phase {
	case protocol.PhaseDone:
		return Succeeded, true
	case protocol.PhaseFailedClean:
		return FailedClean, true
	case protocol.PhaseUndone:
		return Undone, true
	case protocol.PhaseRefused:
		return Refused, true
	}
	return "", false
}

// land remembers a node whose slot is free: nothing, if all went well.
func (p *plan) land(f *flight, e NodeProgress) {
	e.Admitted = time.Time{}
	if e.Result == Succeeded && !e.Failed {
		p.forget(f.slot.UID)
		return
	}
	p.remember(f.slot.UID, e)
}
