// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// run is one try of a pass.
func (p *pass) run() error {
	p.now = time.Now()
	if err := p.gather(); err != nil {
		return errors.Join(err, p.unreadable(err))
	}
	if p.reborn() {
		return p.resettle()
	}
	p.view()
	p.giveBack()
	for i := range rounds {
		moved, err := p.round(i)
		if err != nil {
			return errors.Join(append(p.errs, err)...)
		}
		if !moved {
			break
		}
		if i == rounds-1 {
			p.again(soon)
		}
	}
	if p.sooner(0) {
		return errors.Join(append(p.errs, errSooner)...)
	}
	if err := errors.Join(p.show(), p.tend()); err != nil {
		return errors.Join(append(p.errs, err)...)
	}
	p.forget()
	if len(p.ledger.Slots) > 0 {
		p.again(attend)
	}
	return errors.Join(p.errs...)
}

// gather reads everything. The ledger comes last: a shadow that was missing before it was read is made with its epoch.
func (p *pass) gather() error {
	p.asked = p.c.o.Rollouts.Asked()
	var nodes []Node
	for _, read := range []struct {
		what string
		list func(context.Context) error
	}{
		{"nodes", func(ctx context.Context) (err error) { nodes, err = p.c.o.Fleet.List(ctx); return err }},
		{"shadows", func(ctx context.Context) (err error) { p.shadows, err = p.c.o.Shadows.List(ctx); return err }},
		{"rollouts", func(ctx context.Context) (err error) { p.rollouts, err = p.c.o.Rollouts.List(ctx); return err }},
	} {
		if err := p.call(read.list); err != nil {
			return fmt.Errorf("controller: listing the %s: %w", read.what, err)
		}
	}
	p.nodes = make([]nodeView, len(nodes))
	for i := range nodes {
		p.nodes[i] = nodeView{Node: nodes[i]}
	}
	slices.SortFunc(p.nodes, func(a, b nodeView) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID)) })
	p.rollouts = slices.Clone(p.rollouts)
	slices.SortFunc(p.rollouts, func(a, b Rollout) int { return ownerOf(&a).Compare(ownerOf(&b)) })
	p.catchUp()
	return p.load()
}

// load reads the ledger, and makes one where there is none. One that was seen is as good for a while, unless what was read before speaks of a later
// one: a controller that was frozen is to look before it goes on.
func (p *pass) load() error {
	if s, ok := p.c.o.Ledger.(rollout.SeenLedger); ok && !p.live && p.now.Sub(p.c.mind.sure) < trust {
		var seen bool
		if p.ledger, p.version, seen = s.Seen(); seen && p.latest() <= p.ledger.Epoch {
			return nil
		}
	}
	err := p.call(func(ctx context.Context) (err error) { p.ledger, p.version, err = p.c.o.Ledger.Load(ctx); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return p.newLedger()
	}
	if err != nil {
		return fmt.Errorf("controller: reading the ledger: %w", err)
	}
	p.c.mind.sure = p.now
	return nil
}

// latest is the last attempt that anything speaks of. A ledger knows of all.
func (p *pass) latest() (k protocol.Attempt) {
	for i := range p.shadows {
		sh := &p.shadows[i]
		k = max(k, sh.Orders.Grant, sh.Report.Attempt)
	}
	for i := range p.rollouts {
		for _, e := range p.rollouts[i].Progress.Nodes {
			k = max(k, e.Attempt)
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if k = max(k, markOf(n.Annotations).Attempt); p.c.o.Drainer != nil {
			held, _ := p.c.o.Drainer.Held(n.Annotations)
			k = max(k, protocol.Attempt(held))
		}
	}
	return k
}

// newLedger makes the ledger of a domain that has none. Where there are shadows, there was one, and what it had admitted is looked for.
func (p *pass) newLedger() error {
	shadows, err := p.asStored()
	if err != nil {
		return err
	}
	var l protocol.Ledger
	if len(shadows) > 0 {
		l = ledgerAfterLoss(protocolOf(shadows))
	}
	err = p.call(func(ctx context.Context) error { _, err := p.c.o.Ledger.Store(ctx, l, ""); return err })
	if err != nil && !errors.Is(err, rollout.ErrConflict) {
		return fmt.Errorf("controller: making the ledger: %w", err)
	}
	return errAgain
}

// asStored lists the shadows as the API server has them.
func (p *pass) asStored() (all []Shadow, err error) {
	err = p.call(func(ctx context.Context) (err error) { all, err = p.c.o.Shadows.Live(ctx); return err })
	if err != nil {
		return nil, fmt.Errorf("controller: listing the shadows as they are: %w", err)
	}
	return all, nil
}

func protocolOf(shadows []Shadow) []protocol.Shadow {
	all := make([]protocol.Shadow, len(shadows))
	for i := range shadows {
		all[i] = shadows[i].Shadow
	}
	return all
}

// reborn reports whether the ledger is one that follows a lost one, and is not settled yet.
func (p *pass) reborn() bool {
	return slices.ContainsFunc(p.ledger.Closures, func(c protocol.Closure) bool { return c.Scope == "" && c.Request == rebornRequest })
}

// resettle revokes what the lost ledger had admitted, gives a slot to every node that is disrupted, and opens the ledger.
func (p *pass) resettle() error {
	shadows, err := p.asStored()
	if err != nil {
		return err
	}
	for i := range shadows {
		sh := &shadows[i]
		if sh.Orders.Revoked >= p.ledger.Fence {
			continue
		}
		o, err := sh.Revoke(p.ledger.Fence)
		if err == nil {
			err = p.call(func(ctx context.Context) (err error) { *sh, err = p.c.o.Shadows.Order(ctx, shadows[i], o); return err })
		}
		if err != nil {
			p.note("controller: revoking what a lost ledger has admitted for node %q", err, sh.Node)
		}
	}
	next, waiting := rebuildSlots(p.ledger, protocolOf(shadows), p.place)
	if len(waiting) > 0 {
		p.again(soon)
		return errors.Join(p.errs...)
	}
	if err := p.storeLedger(next); err != nil {
		return err
	}
	return errAgain
}

// place says to which rollout the slot of a node belongs that a lost ledger had admitted: the one that remembers it in flight, or whose revision
// it was ordered.
func (p *pass) place(sh protocol.Shadow) (uid string, keys []string) {
	ordered := protocol.ParseRevision(sh.Orders.Revision)
	best := -1
	for i := range p.rollouts {
		r := &p.rollouts[i]
		e, known := r.Progress.Nodes[sh.UID]
		switch {
		case known && !e.Admitted.IsZero():
			best = i
		case best < 0 && slices.Contains(r.Progress.Targets, ordered):
			best = i
		}
	}
	if best < 0 {
		return lostRollout, nil
	}
	i := slices.IndexFunc(p.nodes, func(n nodeView) bool { return n.UID == sh.UID })
	if r := &p.rollouts[best]; i >= 0 && r.Invalid == nil {
		keys = r.Policy.Keys(rollout.Node{Name: sh.Node, UID: sh.UID, Labels: p.nodes[i].Labels})
	}
	return p.rollouts[best].Policy.UID, keys
}

// lostRollout is the rollout of slots of which nobody knows whose they were. It is gone, and so they are brought to their end.
const lostRollout = "lost"

// view brings together what belongs to each node.
func (p *pass) view() {
	o := &p.c.o
	p.byUID = make(map[string]int, len(p.nodes))
	for i := range p.nodes {
		p.byUID[p.nodes[i].UID] = i
	}
	for i := range p.shadows {
		if n := p.find(p.shadows[i].UID); n != nil && n.Name == p.shadows[i].Node {
			n.shadow = &p.shadows[i]
		}
	}
	p.snapshot = make([]rollout.Node, len(p.nodes))
	for i := range p.nodes {
		p.snapshot[i] = p.viewOf(&p.nodes[i])
	}
	if o.Off != nil {
		p.off = o.Off()
	}
	if p.off != "" {
		p.gates = append(p.gates, rollout.Verdict{From: "operator", Answer: rollout.Deny, Reason: "Disabled", Message: p.off, RetryAfter: offAgain})
	}
	for _, g := range o.Gates {
		_ = p.call(func(ctx context.Context) error { p.gates = append(p.gates, g.Verdict(ctx)); return nil })
	}
	p.askStageGates()
}

// askStageGates asks the gates that the stage which a rollout is at names.
func (p *pass) askStageGates() {
	named := map[string]bool{}
	for i := range p.rollouts {
		r := &p.rollouts[i]
		if stages, at := r.Policy.Stages, r.Progress.Stage; r.Invalid == nil && at >= 0 && at < len(stages) {
			for _, name := range stages[at].Gates {
				named[name] = true
			}
		}
	}
	o := &p.c.o
	for _, name := range slices.Sorted(maps.Keys(o.StageGates)) {
		if !named[name] {
			continue
		}
		_ = p.call(func(ctx context.Context) error {
			v := o.StageGates[name].Verdict(ctx)
			v.From, v.ForStages = name, true
			p.gates = append(p.gates, v)
			return nil
		})
	}
}

// viewOf brings together what belongs to a node, and makes of it what the planner is to see.
func (p *pass) viewOf(n *nodeView) rollout.Node {
	o := &p.c.o
	n.mark = markOf(n.Annotations)
	if o.Drainer != nil {
		k, held := o.Drainer.Held(n.Annotations)
		n.attempt, n.held = protocol.Attempt(k), held
	}
	s := rollout.Node{
		Name: n.Name, UID: n.UID, Labels: n.Labels, Created: n.Created, Away: n.away(), Own: o.OwnNode != "" && n.Name == o.OwnNode,
		Health: p.health(n),
	}
	if n.shadow != nil && !(n.shadow.Deleting && n.shadow.Removable() && p.ledger.Slot(n.UID) == nil) {
		s.Shadow, s.Runs, s.Irreversible = &n.shadow.Shadow, n.shadow.Runs, n.shadow.Irreversible
	}
	if d, ok := p.c.mind.drains[n.UID]; ok && p.isCommitted(n, d.attempt) {
		s.Drain = d.drain
	}
	return s
}

// isCommitted reports whether the node waits in an attempt, as far as it was read.
func (p *pass) isCommitted(n *nodeView, k protocol.Attempt) bool {
	return n.shadow != nil && n.shadow.Report.Attempt == k && n.shadow.Report.Phase == protocol.PhaseCommitted
}

func (p *pass) find(uid string) *nodeView {
	if i, ok := p.byUID[uid]; ok {
		return &p.nodes[i]
	}
	return nil
}

// away says why a node is unavailable for reasons of others.
func (n *nodeView) away() string {
	switch {
	case !n.Ready:
		return "the node is not ready"
	case n.Unschedulable && !n.held:
		return "the node is cordoned, and not by a rollout"
	}
	return ""
}

// health is the verdict on a node: against its baseline as soon as there is one.
func (p *pass) health(n *nodeView) (v rollout.Verdict) {
	if p.c.o.Health == nil {
		if n.Ready {
			return rollout.Verdict{Answer: rollout.Allow}
		}
		return rollout.Verdict{Answer: rollout.Deny, Reason: "NotReady", Message: "the node is not ready"}
	}
	if v, is := p.unmeasured(n); is {
		return v
	}
	_ = p.call(func(ctx context.Context) error { v = p.c.o.Health.Verdict(ctx, n.Node, n.mark.Baseline); return nil })
	return v
}

// forget drops what is remembered of nodes that have no slot any more.
func (p *pass) forget() {
	p.departed()
	for uid := range p.c.mind.drains {
		if p.ledger.Slot(uid) == nil {
			delete(p.c.mind.drains, uid)
		}
	}
	maps.DeleteFunc(p.c.mind.elsewhere, func(_ string, at time.Time) bool { return p.now.Sub(at) >= elsewhere })
	gone := func(uid string) bool {
		return !slices.ContainsFunc(p.rollouts, func(r Rollout) bool { return r.Policy.UID == uid })
	}
	maps.DeleteFunc(p.c.mind.ahead, func(uid string, _ ahead) bool { return gone(uid) })
	p.stalls()
	maps.DeleteFunc(p.c.mind.orphans, func(uid string, _ rollout.Progress) bool { return gone(uid) })
	maps.DeleteFunc(p.c.mind.acknowledged, func(uid string, _ bool) bool { return gone(uid) })
	maps.DeleteFunc(p.c.mind.overlaps, func(uid string, _ bool) bool { return gone(uid) })
	for uid := range p.c.mind.back {
		if p.ledger.Slot(uid) == nil {
			delete(p.c.mind.back, uid)
		}
	}
}
