// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A category is in which of the [Counts] a node is, and whether it may go.
type category uint8

const (
	unselected category = iota
	done
	flying   // it has a slot
	broken   // it has one, and is broken or suspect
	spent    // broken, and there is nothing left to try
	lost     // somebody has given its capacity up
	givenUp  // it has failed as often as it may
	resting  // it has failed, and rests
	deferred // it has to wait for itself
	waiting  // it may go, or waits for others
)

// classify says where each node stands, and what it should get.
func (p *plan) classify() {
	upToDate := &Why{Reason: ReasonUpToDate, Message: "the node runs its revision"}
	for i := range p.nodes {
		m := &p.nodes[i]
		if m.group < 0 {
			continue
		}
		if m.flight >= 0 {
			m.class = p.aloft(m)
			continue
		}
		target := p.targets[m.group].target
		switch e, known := p.progress.Nodes[m.node.UID]; {
		case m.other:
			m.class, m.why = waiting, &Why{Reason: ReasonOther, Message: "another rollout has the node's slot"}
		case m.node.Shadow != nil && m.node.Shadow.Report.Attempt > p.ledger.Epoch:
			// The ledger was read before the record: the slot is in a later one.
			m.class, m.why = flying, &Why{Reason: ReasonInFlight, Message: fmt.Sprintf("attempt %d is later than the ledger that was read", m.node.Shadow.Report.Attempt)}
		case m.node.Shadow != nil && !m.node.Shadow.Report.Phase.AtRest():
			m.class, m.why = adrift(m.node.Shadow.Report, e)
		case target.Ref().Is(m.node.Runs):
			m.class, m.why = done, upToDate
		case !known:
			m.class, m.why = p.untouched(m)
		default:
			m.class, m.why = p.touched(m, e)
		}
	}
}

// next is what a node should get: what has joined gets the revision that is known to be good before the one on trial.
func (p *plan) next(m *member) *Revision {
	if m.group < 0 {
		return nil
	}
	a := p.targets[m.group]
	if m.joined && a.completed != nil && p.progress.Stage < len(p.stages) && !a.completed.Ref().Is(m.node.Runs) && !a.target.Ref().Is(m.node.Runs) {
		return a.completed
	}
	return a.target
}

// adrift is the category of a node that is disrupted and has no slot. Only where this rollout has given its capacity up is it known that the node is
// lost: else its record may be older than the ledger, and the stages go on when it is at rest.
func adrift(r protocol.Report, e NodeProgress) (category, *Why) {
	if e.Result == Lost {
		return lost, &Why{Reason: ReasonLost, Message: fmt.Sprintf("the node is %s in attempt %d, and its capacity was given up", r.Phase, r.Attempt)}
	}
	return deferred, &Why{
		Reason:  ReasonInFlight,
		Message: fmt.Sprintf("the node is %s in attempt %d and has no slot: its record is older than the ledger, or another rollout has given it up", r.Phase, r.Attempt),
	}
}

// aloft is the category of a node that has a slot.
func (p *plan) aloft(m *member) category {
	f := &p.flights[m.flight]
	if f.slot.State == "" && f.state != protocol.FailedBroken {
		return flying
	}
	e := p.progress.Nodes[f.slot.UID]
	if f.state == protocol.FailedBroken && (e.Accepted || e.Attempts >= p.attempts() && (e.Attempts > p.attempts() || p.wayBack(m) == nil)) {
		return spent
	}
	return broken
}

// untouched is the category of a node of which nothing is remembered.
func (p *plan) untouched(m *member) (category, *Why) {
	n := m.node
	switch {
	case n.Shadow == nil || !n.Shadow.Report.Known:
		return deferred, p.noAgent()
	case n.Shadow.Open():
		return deferred, &Why{Reason: ReasonInFlight, Message: fmt.Sprintf("the agent may still commit attempt %d, which has no slot", n.Shadow.Orders.Grant)}
	case n.Away != "":
		return deferred, &Why{Reason: ReasonAway, Message: n.Away}
	case n.Health.Answer == Unknown:
		p.again(n.Health.RetryAfter)
		return deferred, p.unknownHealth()
	case n.Health.Answer != Allow:
		p.again(n.Health.RetryAfter)
		return deferred, &Why{Reason: ReasonUnhealthy, Message: n.Health.text(), After: n.Health.RetryAfter}
	}
	return waiting, nil
}

// touched is the category of a node that was tried before, or put off.
func (p *plan) touched(m *member, e NodeProgress) (category, *Why) {
	m.retried = e.Attempts > 0
	class, why := p.untouched(m)
	switch {
	case e.Attempts >= p.attempts():
		return givenUp, &Why{Reason: ReasonGivenUp, Message: fmt.Sprintf("%d of %d attempts have failed", e.Attempts, p.attempts())}
	case class != waiting:
		return class, why
	case e.NotBefore.After(p.now):
		rest := e.NotBefore.Sub(p.now)
		p.again(rest)
		class = deferred
		if m.retried {
			class = resting
		}
		return class, &Why{
			Reason: ReasonBackOff, After: rest,
			Message: fmt.Sprintf("the last attempt has ended as %s; the next one is not before %s", e.Result, e.NotBefore.UTC().Format(time.RFC3339)),
		}
	}
	return waiting, nil
}

// noAgent and unknownHealth are shared: at the beginning they are true of every node.
func (p *plan) noAgent() *Why {
	return p.limits.share(ReasonNoAgent, "the agent has not said yet what it has done")
}

func (p *plan) unknownHealth() *Why {
	return p.limits.share(ReasonUnhealthy, "the health of the node is not known")
}

// tally adds a selected node to the counts.
func (c *Counts) tally(m *member) {
	c.Selected++
	switch m.class {
	case done:
		c.Done++
	case flying:
		c.InFlight++
	case broken, spent:
		c.Broken++
	case lost:
		c.Lost++
	case givenUp, resting:
		c.Failed++
	case deferred:
		c.Deferred++
	default:
		if m.retried {
			c.Failed++
			return
		}
		c.Waiting++
	}
}
