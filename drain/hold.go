// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"time"
)

// holdEvery is how often the Lease of a held node is renewed. The node lifecycle controller calls a node lost after 50 s without a
// sign of life by default (node-monitor-grace-period of kube-controller-manager 1.36), so that three renewals may fail.
const holdEvery = 10 * time.Second

// hold cordons the node, and renews its Lease in place of the kubelet until the time in the mark. That time is fixed by the first pass of
// the maintenance: a longer hold needs a new maintenance ID, so that no mistake in a loop holds a node for ever.
func (p *pass) hold(ctx context.Context) error {
	mine := p.mark.of(p.r.Holder)
	begun := mine != nil && mine.Mode == Hold && mine.Maintenance == p.r.Maintenance && mine.Released.IsZero()
	if !begun {
		if ok, err := p.beginHold(ctx); !ok {
			return err
		}
		mine = p.mark.of(p.r.Holder)
	}
	p.st.Started = mine.Since
	if !p.node.Spec.Unschedulable {
		if err := p.uncordoned(ctx); err != nil {
			return err
		}
	}
	if p.after == 0 || p.after > holdEvery {
		p.ask(holdEvery)
	}
	if !p.now.Before(mine.Until) {
		p.holdOver(*mine)
		return nil
	}
	p.st.Phase, p.st.Reason, p.st.Message = Pending, reasonLeaseNotRenewed, "the Lease has not been renewed in place of the kubelet yet: leave it running"
	if !p.memory.renewed.IsZero() {
		p.st.Phase = Holding
	}
	alive, err := p.heartbeat(ctx)
	if err != nil {
		return err
	}
	if !alive {
		return p.abandon(ctx, *mine)
	}
	p.askAt(mine.Until)
	return p.renew(ctx)
}

// beginHold enters the hold with its end. It reports whether it has.
func (p *pass) beginHold(ctx context.Context) (bool, error) {
	if !p.now.Before(p.r.HoldUntil) || p.r.HoldUntil.Sub(p.now) > MaxHold {
		p.st.Phase, p.st.Outcome = Failed, OutcomeFailed
		return false, fmt.Errorf("holding node %q: HoldUntil must be later than now and within %s, got %s: %w", p.node.Name, MaxHold, p.r.HoldUntil.UTC().Format(time.RFC3339), ErrOption)
	}
	ok, err := p.enter(ctx, holder{Mode: Hold, Until: p.r.HoldUntil})
	if !ok {
		p.st.Phase = Pending
	}
	return ok, err
}

// holdOver reports a hold that has ended: by its time, or because it was abandoned before.
func (p *pass) holdOver(mine holder) {
	p.after = 0
	p.st.Phase, p.st.Reason, p.st.Finished = HoldEnded, reasonHoldExpired, mine.Until
	p.st.Message = fmt.Sprintf("held until %s: the Lease is renewed no more, and a node without its kubelet is lost as usual", mine.Until.UTC().Format(time.RFC3339))
	if mine.Abandoned {
		p.st.Reason = reasonHoldAbandoned
	}
}

// heartbeat asks whether the agent on the node still lives, where there is somebody to ask.
func (p *pass) heartbeat(ctx context.Context) (bool, error) {
	if p.d.o.Heartbeat == nil {
		return true, nil
	}
	name := p.node.Name
	alive, err := p.d.registry.ask(ctx, question{"heartbeat", p.r.Holder, p.node.UID}, func(ctx context.Context) (bool, error) {
		return p.d.o.Heartbeat(ctx, name)
	})
	if err != nil {
		return false, fmt.Errorf("asking for the heartbeat on node %q: %w", name, err)
	}
	return alive, nil
}

// abandon ends a hold whose agent is silent, for good: the time in the mark becomes now.
func (p *pass) abandon(ctx context.Context, mine holder) error {
	mine.Until, mine.Abandoned = p.now, true
	p.st.Phase = Holding
	if ok, err := p.write(ctx, nodeChange{mark: p.mark.with(mine)}); !ok {
		return err
	}
	p.holdOver(mine)
	return nil
}

// renew keeps the node's Lease fresh: at its time, not at every change of the node. A failure is the pass's: the next one comes as early.
func (p *pass) renew(ctx context.Context) error {
	if wait := p.memory.renewed.Add(holdEvery).Sub(p.now); !p.memory.renewed.IsZero() && wait > 0 && wait <= holdEvery {
		p.st.Phase, p.st.Reason, p.st.Message = Holding, reasonNone, ""
		p.ask(wait)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, holdEvery)
	defer cancel()
	if err := p.d.o.Leases.Renew(ctx, p.node.Name); err != nil {
		return fmt.Errorf("renewing the Lease of held node %q: %w", p.node.Name, err)
	}
	p.memory.renewed = p.now
	p.st.Phase, p.st.Reason, p.st.Message = Holding, reasonNone, ""
	return nil
}
