// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// ReasonInvalid is the reason of a rollout whose policy can't be followed.
const ReasonInvalid rollout.Reason = "Invalid"

// round decides for all rollouts, stores that, and acts. moved reports whether there may be more to do at once. Where there is nothing new that has to
// be remembered, it acts first, and what a rollout only shows waits: see [Options].ShowEvery. A controller that dies at each of its writes would
// otherwise never get past those that do nothing. The first round of a pass that has admitted nodes leaves the rest to the second, in which they are granted. The first
// two that have closed the ledger or revoked grants do so likewise, as who aborts waits for the status that follows from it.
func (p *pass) round(n int) (moved bool, err error) {
	next := p.decide()
	alone := n == 0 && next.Epoch > p.ledger.Epoch || n <= 1 && !reflect.DeepEqual(next.Closures, p.ledger.Closures)
	if moved = !reflect.DeepEqual(next, p.ledger); moved {
		if all, err := p.foretell(next); err != nil || !all {
			return err == nil, err // without those that can't be stored
		}
		if err := p.storeLedger(next); err != nil {
			return false, err
		}
	}
	p.shown = nil
	for i := range p.rollouts {
		if p.mayWait(i) {
			p.goAhead(i)
		} else if ok, err := p.storeProgress(i); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		acted, err := p.carryOut(i, alone, n <= 1)
		if err != nil {
			return false, err
		}
		moved = moved || acted
	}
	return moved, nil
}

// carryOut acts on what was decided for a rollout. What slots have just come free for, and what is not to be begun any more, goes before what the nodes that
// have their slots still wait for; it is all that is done if it is to be alone, or by an early round that has revoked.
func (p *pass) carryOut(i int, alone, early bool) (moved bool, err error) {
	for _, urgent := range []bool{true, false} {
		if !urgent && alone {
			break
		}
		if !urgent && p.sooner(0) {
			return false, errSooner
		}
		for _, d := range p.decided[i].Nodes {
			if urgent != isUrgent(d.Do) {
				continue
			}
			before, written := p.calls, p.writes
			if p.act(i, d) {
				moved, alone = true, alone || early && d.Do == protocol.EventRevoke
			}
			if p.calls > before && p.c.o.Rollouts.Asked() != p.asked {
				return false, errAgain
			}
			if !urgent && p.sooner(written) {
				return false, errSooner
			}
		}
	}
	return moved, nil
}

// isUrgent reports whether somebody waits for it but the node alone.
func isUrgent(do protocol.Event) bool {
	return do == protocol.EventGrant || do == protocol.EventRevoke
}

// show writes what rollouts only show, if it is time for that.
func (p *pass) show() error {
	if wait := p.c.mind.showAt.Sub(p.now); wait > 0 {
		if len(p.shown) > 0 {
			p.again(wait)
		}
		return nil
	}
	before := p.writes
	for _, i := range p.shown {
		if _, err := p.storeProgress(i); err != nil {
			return err
		}
	}
	p.repeated += p.writes - before // nothing follows from it
	p.c.mind.showAt = p.now.Add(p.c.o.ShowEvery)
	return nil
}

// decide has Plan decide for one rollout after the other, each on the ledger that the one before has left, and under the caps of all.
func (p *pass) decide() protocol.Ledger {
	p.adopt()
	l := p.ledger
	p.refused = map[string]error{}
	p.decided = make([]rollout.Decisions, len(p.rollouts))
	p.disown()
	for i := range p.rollouts { // for what caps there are, and who has which nodes
		p.plan(i, l, nil)
		p.own(i)
	}
	for i := range p.rollouts {
		r := &p.rollouts[i]
		if p.undecided(i) {
			continue
		}
		if others := p.otherCaps(i); !reflect.DeepEqual(l, p.ledger) || len(others) > 0 {
			p.plan(i, l, others)
		}
		if !p.undecided(i) {
			p.again(p.decided[i].After)
			l = p.ended(r, p.gone(p.decided[i], p.decided[i].Ledger))
		}
	}
	return l
}

// plan has Plan decide for one rollout.
func (p *pass) plan(i int, l protocol.Ledger, others []protocol.Cap) {
	r := &p.rollouts[i]
	err := r.Invalid
	if err == nil {
		p.decided[i], err = p.planAside(i, rollout.Snapshot{Ledger: l, Nodes: p.snapshot, Progress: r.Progress, Gates: p.gates, OtherCaps: others})
	}
	if err != nil {
		p.refuse(i, l, err)
		return
	}
	for _, d := range p.decided[i].Nodes {
		if n := p.find(d.UID); n != nil && d.Group >= 0 {
			n.selected = true
		}
	}
}

// refuse has a rollout say why nothing is decided for it, unless somebody has asked to stop it.
func (p *pass) refuse(i int, l protocol.Ledger, err error) {
	r := &p.rollouts[i]
	p.refused[r.Policy.UID] = err
	if p.stop(i, l, err) {
		return
	}
	p.decided[i] = rollout.Decisions{Progress: r.Progress, Phase: r.Progress.Phase, Reason: ReasonInvalid, Message: err.Error()}
}

// undecided reports whether nothing was decided for a rollout: its policy can't be followed, and nobody has asked to stop it.
func (p *pass) undecided(i int) bool {
	return p.refused[p.rollouts[i].Policy.UID] != nil && p.decided[i].Reason != ReasonStopped
}

// otherCaps are those of the other rollouts. Of one whose policy can't be followed they are not known: as long as it has slots, there is no
// room for more.
func (p *pass) otherCaps(i int) []protocol.Cap {
	all := slices.Clone(p.c.o.Caps)
	for j := range p.rollouts {
		r := &p.rollouts[j]
		holds := func(s protocol.Slot) bool { return s.Rollout == r.Policy.UID }
		switch {
		case j == i:
		case p.refused[r.Policy.UID] == nil:
			all = append(all, p.decided[j].Caps...)
		case slices.ContainsFunc(p.ledger.Slots, holds):
			all = append(all, protocol.Cap{Max: 1, From: fmt.Sprintf("rollout %q, whose own caps are not known", r.Name)})
		}
	}
	return all
}

// policyOf is what to follow. A rollout that is being deleted selects no node any more.
func policyOf(r *Rollout) rollout.Policy {
	policy := r.Policy
	if !r.Deleting {
		return policy
	}
	policy.Stages, policy.Prefetch = nil, nil
	policy.Groups = slices.Clone(policy.Groups)
	for i := range policy.Groups {
		policy.Groups[i].Selector, policy.Groups[i].Nodes = labels.Nothing(), nil
	}
	return policy
}

// orphan is the version of a rollout that is gone, and has left slots.
type orphan struct{}

// adopt finds slots whose rollout is gone, and brings them to their end like those of one that is being deleted. What is to be remembered of them no status
// has: it is known since this controller has seen them first.
func (p *pass) adopt() {
	for i := range p.rollouts {
		if r := &p.rollouts[i]; r.Deleting && r.Invalid != nil { // its policy can't be followed, and need not be
			r.Policy, r.Invalid = nobodys(r.Policy.UID), nil
		}
	}
	for i := range p.ledger.Slots {
		uid := p.ledger.Slots[i].Rollout
		if _, _, lent := p.ledger.Slots[i].Borrower(); lent {
			continue // it is given back by its holder
		}
		if slices.ContainsFunc(p.rollouts, func(r Rollout) bool { return r.Policy.UID == uid }) {
			continue
		}
		gone := uid == lostRollout
		if !gone {
			err := p.call(func(ctx context.Context) (err error) { gone, err = p.c.o.Rollouts.Gone(ctx, uid); return err })
			if err != nil {
				p.note("controller: asking for the rollout with UID %q, which has a slot", err, uid)
				continue
			}
		}
		if gone {
			was := p.c.mind.orphans[uid]
			p.rollouts = append(p.rollouts, Rollout{Name: uid, Policy: nobodys(uid), Progress: was, Deleting: true, Version: orphan{}})
			p.stored[uid] = was
		}
	}
}

// nobodys is the policy of a rollout that selects no node: what it has begun comes to its end.
func nobodys(uid string) rollout.Policy {
	none := rollout.Revision{Name: "none", Digest: "none"}
	return rollout.Policy{UID: uid, Target: none, Groups: []rollout.Group{{Name: "none", Selector: labels.Nothing()}}}
}

// gone frees the slots of nodes that the API server does not have any more.
func (p *pass) gone(d rollout.Decisions, l protocol.Ledger) protocol.Ledger {
	for _, n := range d.Nodes {
		if n.Do != protocol.EventGone {
			break // they are the first
		}
		gone := false
		err := p.call(func(ctx context.Context) (err error) { gone, err = p.c.o.Fleet.Gone(ctx, n.Node, n.UID); return err })
		if err != nil {
			p.note("controller: asking whether node %q is gone", err, n.Node)
		}
		if next, err := l.Gone(n.UID); gone && err == nil {
			l = next
		}
	}
	return l
}

// ended takes away the closures of a rollout that is being deleted and has no slot any more.
func (p *pass) ended(r *Rollout, l protocol.Ledger) protocol.Ledger {
	if !r.Deleting || hasSlot(l, r.Policy.UID) {
		return l
	}
	for _, c := range l.Closures {
		if c.Scope == r.Policy.UID {
			l = l.Open(c.Scope, c.Request)
		}
	}
	return l
}

func hasSlot(l protocol.Ledger, rollout string) bool {
	return slices.ContainsFunc(l.Slots, func(s protocol.Slot) bool { return s.Rollout == rollout })
}

// storeLedger stores what was decided. Nothing is admitted that the switch does not allow by now.
func (p *pass) storeLedger(next protocol.Ledger) error {
	if err := errors.Join(next.Validate(), next.Follows(p.ledger)); err != nil {
		return fmt.Errorf("controller: the ledger that was decided is not valid, and was not stored: %w", err)
	}
	if off := p.c.o.Off; off != nil && p.off == "" && next.Epoch > p.ledger.Epoch && off() != "" {
		return errAgain
	}
	var version string
	err := p.write(func(ctx context.Context) (err error) {
		version, err = p.c.o.Ledger.Store(ctx, next, p.version)
		return err
	})
	switch {
	case errors.Is(err, rollout.ErrConflict):
		return errAgain
	case err != nil:
		return fmt.Errorf("controller: storing the ledger: %w", err)
	}
	p.ledger, p.version, p.c.mind.sure = next, version, p.now
	return nil
}

// storeProgress stores what is to be remembered of a rollout, and tells what has changed. It reports whether its decisions may be carried out.
func (p *pass) storeProgress(i int) (bool, error) {
	decided := !p.undecided(i)
	stored, err := p.store(i, decided)
	return stored && decided, err
}

// store stores what is to be remembered of a rollout, and reports whether it is stored. If nothing was decided, its progress is left as it is.
func (p *pass) store(i int, decided bool) (bool, error) {
	r, d := p.rollouts[i], p.decided[i]
	if _, ok := r.Version.(orphan); ok {
		p.remember(i)
		return true, nil
	}
	again := p.refused[r.Policy.UID] != nil && p.c.equal.DeepEqual(d.Progress, p.stored[r.Policy.UID])
	var next Rollout
	err := p.write(func(ctx context.Context) error {
		var after time.Duration
		var err error
		next, after, err = p.c.o.Rollouts.Store(ctx, r, d)
		p.again(after)
		return err
	})
	switch {
	case errors.Is(err, rollout.ErrConflict):
		return false, errAgain
	case err != nil:
		p.note("controller: storing the progress of rollout %q", err, r.Name)
		return false, nil
	}
	if again {
		p.repeated++
	}
	p.edges(r, d)
	if decided {
		p.remember(i)
	}
	p.rollouts[i].Version, p.rollouts[i].Stalled = next.Version, next.Stalled
	return true, nil
}
