// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// tend looks after what is not part of an attempt: marks and cordons that nothing stands behind any more, shadows, rollouts that go.
func (p *pass) tend() error {
	for i := range p.nodes {
		n := &p.nodes[i]
		if p.ledger.Slot(n.UID) != nil {
			continue
		}
		written := p.writes
		p.open(n)
		if n.held && n.shadow == nil && !n.selected {
			p.abandon(n)
		}
		if n.mark.there && !p.foreign(n.mark.Rollout) {
			p.unmark(n)
		}
		if p.sooner(written) {
			return errSooner
		}
	}
	p.finish()
	p.bury()
	if len(p.refused) == 0 { // otherwise it is not known who selects what
		p.dismiss()
	}
	return p.enlist()
}

// foreign reports whether a rollout that has marked a node is one of another domain, by the API server's word.
func (p *pass) foreign(uid string) bool {
	if uid == "" || slices.ContainsFunc(p.rollouts, func(r Rollout) bool { return r.Policy.UID == uid }) {
		return false
	}
	if p.isElsewhere(uid) {
		return true
	}
	gone := false
	err := p.call(func(ctx context.Context) (err error) { gone, err = p.c.o.Rollouts.Gone(ctx, uid); return err })
	if err != nil {
		p.note("controller: asking for the rollout with UID %q, which has marked a node", err, uid)
	} else if !gone {
		p.c.mind.elsewhere[uid] = p.now
	}
	return !gone
}

// isElsewhere reports whether something was found to be in another domain not long ago. It has the pass be called again when that is to be looked at anew.
func (p *pass) isElsewhere(uid string) bool {
	left := p.c.mind.elsewhere[uid].Add(elsewhere).Sub(p.now)
	if left <= 0 {
		delete(p.c.mind.elsewhere, uid)
		return false
	}
	p.again(left)
	return true
}

// abandon takes the cordon off a node that nobody selects and that has neither slot nor shadow.
func (p *pass) abandon(n *nodeView) {
	err := p.call(func(ctx context.Context) error { _, err := p.c.o.Shadows.Get(ctx, n.Name); return err })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.release(n, n.attempt)
	case err != nil:
		p.note("controller: looking for a shadow of node %q", err, n.Name)
	}
}

// finish lets the rollouts go that are being deleted and have no slot any more.
func (p *pass) finish() {
	for i := range p.rollouts {
		r := &p.rollouts[i]
		_, none := r.Version.(orphan)
		if !r.Deleting || none || hasSlot(p.ledger, r.Policy.UID) {
			continue
		}
		if err := p.write(func(ctx context.Context) error { return p.c.o.Rollouts.Finish(ctx, *r) }); err != nil {
			p.note("controller: letting rollout %q go", err, r.Name)
		}
	}
}

// bury removes the shadows of Nodes that are gone, when their slots are free.
func (p *pass) bury() {
	for i := range p.shadows {
		sh := &p.shadows[i]
		if p.find(sh.UID) != nil || p.ledger.Slot(sh.UID) != nil {
			continue
		}
		err := p.write(func(ctx context.Context) error { return p.c.o.Shadows.Bury(ctx, *sh) })
		switch {
		case err == nil:
			p.again(soon) // for the Node that may have come in its place
		case !errors.Is(err, rollout.ErrConflict): // otherwise the Node is there, and will be seen
			p.note("controller: removing the shadow of node %q, which is gone", err, sh.Node)
		}
	}
}

// deletes reports whether somebody has deleted the shadow of a node: it gets no grant any more, and is to make room for another one.
func (p *pass) deletes(n *nodeView) bool { return n.shadow != nil && n.shadow.Deleting }

// dismiss removes the shadows of nodes that no rollout selects any more, and those that somebody has deleted.
func (p *pass) dismiss() {
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.selected && !p.deletes(n) || n.shadow == nil || n.held || n.mark.there || p.ledger.Slot(n.UID) != nil || !n.shadow.Removable() {
			continue
		}
		if err := p.write(func(ctx context.Context) error { return p.c.o.Shadows.Delete(ctx, *n.shadow) }); err != nil {
			p.note("controller: removing the shadow of node %q", err, n.Name)
		}
	}
}

// enlist makes the shadows of selected nodes that have none. The ledger is read after the API server has shown that they are missing: no
// attempt before that can be committed on a new one.
func (p *pass) enlist() error {
	missing := func(n *nodeView) bool { return n.selected && n.shadow == nil && !p.isElsewhere(n.UID) }
	if !slices.ContainsFunc(p.nodes, func(n nodeView) bool { return missing(&n) }) {
		return nil
	}
	live, err := p.asStored()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range live {
		there[live[i].Node] = true
	}
	var l protocol.Ledger
	if err := p.call(func(ctx context.Context) (err error) { l, _, err = p.c.o.Ledger.Load(ctx); return err }); err != nil {
		return fmt.Errorf("controller: reading the ledger for new shadows: %w", err)
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if !missing(n) || there[n.Name] {
			continue
		}
		sh := protocol.NewShadow(n.Name, n.UID, l)
		if err := p.write(func(ctx context.Context) error { _, err := p.c.o.Shadows.Create(ctx, sh); return err }); err != nil {
			if errors.Is(err, ErrOtherDomain) {
				p.c.mind.elsewhere[n.UID] = p.now
			}
			p.note("controller: making the shadow of node %q", err, n.Name)
		}
	}
	return nil
}
