// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ErrOption is wrapped by the error of [New] for options that cannot be used.
var ErrOption = errors.New("invalid option")

// soon is how long a pass asks to be called again after something that is expected to be over at once.
const soon = 200 * time.Millisecond

// A pass is one call of [Drainer.ReconcileRequest]. It owns all its fields.
type pass struct {
	d       *Drainer
	r       Request
	now     time.Time
	node    *corev1.Node
	mark    mark
	memory  *memory
	st      Status
	after   time.Duration // 0: nothing asked for a time yet
	plan    *NodePlan
	proof   error // why there is no proof that the machine is off
	dropped bool  // the memory is kept no longer
	// budgets are those that may wake it after this pass.
	budgets map[types.NamespacedName]bool
}

// run carries out the request as far as one pass can.
func (p *pass) run(ctx context.Context) error {
	p.node = p.d.registry.newest(p.d.o.Cache, p.r.Node)
	if p.drainedLast() {
		p.st = *p.r.Last
		return nil
	}
	uid := uidOf(p.r, p.memory.uid)
	if p.node == nil {
		if err := p.believeGone(ctx); err != nil {
			return err
		}
	}
	if p.node == nil || (uid != "" && p.node.UID != uid) {
		return p.nodeGone(ctx)
	}
	var err error
	p.mark, err = markOf(p.node)
	if p.mark = p.mark.withOwner(p.node); err != nil {
		p.st.Phase, p.st.Outcome, p.st.Reason, p.st.Message = Failed, OutcomeFailed, reasonMarkUnreadable, err.Error()
		p.ask(lastFallback) // somebody may mend it
		p.d.scheduler.forget(p.r.Node)
		return nil
	}
	if p.memory.uid != p.node.UID { // what was known is of another node
		p.memory.mine, p.memory.stray = nil, false
	}
	p.memory.uid, p.st.NodeUID = p.node.UID, p.node.UID
	if releasedByOther(p) {
		return nil
	}
	if p.mark.of(p.r.Holder) != nil || !p.node.Spec.Unschedulable {
		p.remember()
	}
	if ok, err := p.markAgain(ctx); !ok {
		return err
	}
	return p.carryOut(ctx)
}

// carryOut does what the mode asks for.
func (p *pass) carryOut(ctx context.Context) error {
	mine := p.mark.of(p.r.Holder)
	if by, why := findOwner(mine, p.memory.mine, p.r, p.now); by != nil {
		if leaveToOther(p, why, describeOwner(p, by, why)); why == HeldByOtherRun {
			p.ask(lastFallback) // that run may die, which changes nothing on the node
		}
		return nil
	}
	if mine.isOfOtherRun(p.r) && p.r.Mode != Release {
		if ok, err := takeOver(ctx, p, *mine); !ok {
			return err
		}
	}
	switch p.r.Mode {
	case Cordon:
		return p.cordonOnly(ctx)
	case Hold:
		return p.hold(ctx)
	case Release:
		return p.release(ctx)
	default:
		return p.drain(ctx)
	}
}

// believeGone returns an error unless the API server has no such Node. A Node that the cache has shown and shows no more was deleted; whether
// there is one that it has never shown, the server is asked.
func (p *pass) believeGone(ctx context.Context) error {
	if p.memory.uid != "" {
		return p.d.checkCache()
	}
	if err := p.d.nodeMissing(ctx, p.r.Node); !errors.Is(err, ErrNodeNotFound) {
		return err
	}
	return nil
}

// drainedLast reports whether the caller's last status is the result that is asked for. It is believed also when the node is gone, or the
// API server is with it, but not for another node of the same name.
func (p *pass) drainedLast() bool {
	l := p.r.Last
	if p.r.Mode != Drain || l == nil || l.Phase != Drained || l.Maintenance != p.r.Maintenance || l.Holder != p.r.Holder {
		return false
	}
	same := func(uid types.UID) bool { return uid == "" || l.NodeUID == "" || uid == l.NodeUID }
	return same(p.r.NodeUID) && (p.node == nil || same(p.node.UID))
}

// nodeGone ends what was wanted of a node that is not there, or is another one. Nothing of the holder can be on it.
func (p *pass) nodeGone(ctx context.Context) error {
	err := p.cancelHooks(ctx)
	p.d.scheduler.forget(p.r.Node)
	if p.r.Mode == Release {
		p.st.Phase = Released
		if err == nil {
			p.drop()
		}
		return err
	}
	// What is remembered stays: it tells a node that comes under this name from the one that was meant.
	p.st.NodeUID = uidOf(p.r, p.memory.uid)
	p.memory.uid = p.st.NodeUID
	p.st.Phase, p.st.Outcome = Failed, OutcomeFailed
	if p.node == nil {
		p.st.Reason, p.st.Message = NodeNotFound, fmt.Sprintf("there is no node %q", p.r.Node)
	} else {
		p.st.Reason = NodeReplaced
		p.st.Message = fmt.Sprintf("node %q has UID %q now, and this is about UID %q", p.r.Node, p.node.UID, uidOf(p.r, p.memory.uid))
	}
	return err
}

// cordonOnly enters the holder and leaves the pods alone.
func (p *pass) cordonOnly(ctx context.Context) error {
	mode := Cordon
	switch p.r.cordonFor {
	case cordonAhead:
		if !p.wouldBegin() {
			p.st.Phase = Pending
			return nil
		}
		mode = modeWaiting
	case cordonAndDrain:
		if p.wouldBegin() {
			mode = Drain // which saves the write at its beginning
		}
	}
	if ok, err := p.enter(ctx, holder{Mode: mode}); !ok {
		return err
	}
	if !p.node.Spec.Unschedulable {
		return p.uncordoned(ctx)
	}
	p.st.Phase = Cordoned
	return publishWaiting(ctx, p, mode)
}

// enter makes sure that the holder's entry for this maintenance and mode is on the node. It reports whether it is;
// without an error the status says why not. A node that is already this holder's keeps its time.
func (p *pass) enter(ctx context.Context, h holder) (bool, error) {
	mine := p.mark.of(p.r.Holder)
	same := mine != nil && mine.Maintenance == p.r.Maintenance && mine.Released.IsZero()
	if same && mine.coversMode(h.Mode) {
		p.st.Started = mine.Since
		return true, nil
	}
	// A drain or hold of a node that waits for it takes nothing from another run.
	follows := same && mine.Mode.leavesPods()
	if !follows && waitForRivals(p, mine) {
		return false, nil
	}
	h = completeEntry(h, p.r, mine, p.now)
	p.memory.emptySince, p.memory.renewed = time.Time{}, time.Time{}
	if ok, err := writeEntry(ctx, p, h); !ok {
		return false, err
	}
	if !follows {
		p.memory.entries.recordWrite(p.now)
	}
	p.st.Started = h.Since
	return true, nil
}

// writeEntry writes the mark with the entry, and the cordon. It reports whether both are on the node.
func writeEntry(ctx context.Context, p *pass, h holder) (bool, error) {
	var others map[string]*string
	if p.r.annotate != nil {
		var ok bool
		if others, ok = p.r.annotate(p.node.Annotations); !ok {
			return false, nil
		}
	}
	if !p.node.Spec.Unschedulable { // what is there now came while the node was open
		p.memory.returns.look(p.d.o.Cache.Pods(p.node.Name), true)
	}
	if ok, err := readOwners(ctx, p, p.mark); !ok {
		return false, err
	}
	before := p.node.Spec.Unschedulable && !p.memory.stray
	c := cordonWith(p.node, p.mark, h, p.now)
	if !p.mark.held() {
		c.mark.Unschedulable = before
	}
	c.annotations = others
	if ok, err := p.write(ctx, c); !ok {
		return false, err
	}
	if p.mark.of(p.r.Holder) == nil {
		return false, p.unmarked(ctx, before)
	}
	return true, nil
}

// markAgain answers to somebody who has removed this holder's entry, and not the cordon of which it speaks: it is written again as it was,
// so that what was latched, the end of a hold and the time of each step stand. It reports whether the pass may go on. A release goes by
// what the entry said, and writes none.
func (p *pass) markAgain(ctx context.Context) (bool, error) {
	mine := p.memory.mine
	if mine == nil || p.mark.of(p.r.Holder) != nil {
		return true, nil
	}
	again := p.mark
	if !again.held() {
		again.Unschedulable, again.Cordoned, again.CordonedBy = mine.Unschedulable, mine.Cordoned, mine.CordonedBy
	}
	again = again.with(mine.Holders[0])
	if ok, err := readOwners(ctx, p, again); !ok {
		return false, err
	}
	again.Unschedulable = again.Unschedulable || again.cordonReplaced(p.node)
	before := again.Unschedulable
	if p.r.Mode == Release {
		p.mark = again
		return true, nil
	}
	if waitForRivals(p, nil) { // the cordon is there, and is given back if this ends now
		p.st.Phase, p.st.Started = Paused, mine.Holders[0].Since
		return false, nil
	}
	if ok, err := p.write(ctx, nodeChange{mark: again}); !ok {
		return false, err
	}
	if p.mark.of(p.r.Holder) == nil {
		return false, p.unmarked(ctx, before)
	}
	p.memory.entries.recordWrite(p.now)
	return true, nil
}

// unmarked answers to a server that has taken the cordon without its mark, as an admission webhook can make it: a cordon that nobody would
// take off again is taken off at once.
func (p *pass) unmarked(ctx context.Context, before bool) error {
	err := fmt.Errorf("cordoning node %q: the server has stored it without annotation %q: something strips it, and without it nobody knows whose cordon it is",
		p.node.Name, MarkAnnotation)
	p.memory.stray = !before
	return errors.Join(err, p.takeOff(ctx))
}

// takeOff ends a cordon of ours that has lost its mark. One that can't be ended is remembered: nobody else would know of it.
func (p *pass) takeOff(ctx context.Context) error {
	if !p.memory.stray || !p.node.Spec.Unschedulable {
		p.memory.stray = false
		return nil
	}
	no := false
	// The taint that follows a cordon may be there by now. Whose the cordon is was known a moment ago and is not for long.
	ok, err := p.write(ctx, nodeChange{unschedulable: &no, anyVersion: true})
	p.memory.stray = !ok
	return err
}

// write sends a change of the node, and takes its answer as the node of this pass. A conflict is no error: the next pass decides anew.
// Once it is under way it is not cut short by ctx: what the server may still do has to be known before the node is given back.
func (p *pass) write(ctx context.Context, c nodeChange) (bool, error) {
	patch, err := c.patch(p.node)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return false, err
	}
	node, err := p.d.o.Client.PatchNode(context.WithoutCancel(ctx), p.node.Name, patch, c.conditions != nil)
	if err != nil && p.r.Mode == Drain && !p.begun() && (apierrors.IsConflict(err) || Classify(err).Verdict == verdictUnknown) {
		p.memory.doubt.Store(true)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		p.st.Reason, p.st.Message = reasonWriteConflict, fmt.Sprintf("node %q has changed since it was read", p.node.Name)
		p.ask(soon)
		return false, nil
	case err != nil:
		p.memory.unsure.Store(true)
		return false, fmt.Errorf("writing the mark of node %q: %w", p.node.Name, err)
	}
	p.node = node
	p.memory.unsure.Store(false)
	p.memory.doubt.Store(false)
	p.d.registry.wrote(p.d.o.Cache, node)
	p.mark, err = markOf(node)
	p.mark = p.mark.withOwner(node)
	p.remember()
	return err == nil, err
}

// remember keeps what the mark says of this holder's cordon, or that there is none: a mark that goes while the cordon stays was not taken
// off by a release, and what the node was before is known here alone.
func (p *pass) remember() {
	mine := p.mark.of(p.r.Holder)
	if mine.isOfOtherRun(p.r) {
		p.memory.told.superseded = p.memory.mine != nil
		return
	}
	by, _ := findOwner(mine, p.memory.mine, p.r, p.now)
	if p.memory.told.superseded = false; by != nil {
		return
	}
	p.memory.mine = nil
	if mine != nil && mine.Released.IsZero() {
		of := p.mark
		of.Holders, of.extra = []holder{*mine}, nil
		p.memory.mine = &of
		p.memory.mine.Holders[0].Frozen = "" // that is over with the mark
	}
}

// uncordoned answers to somebody else's uncordon, by the policy.
func (p *pass) uncordoned(ctx context.Context) error {
	p.memory.emptySince = time.Time{}
	if p.r.Policy.Uncordoned == Recordon {
		return p.recordon(ctx)
	}
	p.st.Phase, p.st.Reason = Paused, UncordonedByOther
	p.st.Message = fmt.Sprintf("another client has uncordoned node %q: cordon it to go on, which the release leaves so, "+
		"or release it", p.node.Name)
	return nil
}

// recordon cordons the node again, the less often the more often somebody else undoes it. What a release gives back is what that one wants:
// a schedulable node.
func (p *pass) recordon(ctx context.Context) error {
	if wait := p.memory.recordons.waitTime(p.now, 0); wait > 0 {
		p.st.Phase, p.st.Reason = Paused, UncordonedByOther
		p.st.Message = fmt.Sprintf("somebody else has uncordoned node %q again: it is cordoned in %s", p.node.Name, wait.Round(time.Second))
		p.ask(wait)
		return nil
	}
	if ok, err := p.write(ctx, cordonWith(p.node, p.mark, *p.mark.of(p.r.Holder), p.now)); !ok {
		return err
	}
	if p.memory.recordons.recordWrite(p.now); p.memory.recordons.writes == 1 {
		p.event(corev1.EventTypeWarning, "Recordoned", "somebody else has uncordoned the node; it is cordoned again")
	}
	p.ask(soon)
	return nil
}

// contested reports whether somebody undoes the cordon again and again. That is told once, not with each turn.
func (p *pass) contested() bool {
	r := p.memory.recordons
	return r.writes > 1 && p.now.Before(r.next.Add(lastFallback)) && (p.st.Phase == Paused || p.st.Phase == Draining)
}

// ask wants the next pass after d at the latest.
func (p *pass) ask(d time.Duration) {
	if d <= 0 {
		d = time.Millisecond
	}
	if p.after == 0 || d < p.after {
		p.after = d
	}
}

// askAt wants the next pass at t at the latest; the zero time asks for nothing.
func (p *pass) askAt(t time.Time) {
	if !t.IsZero() {
		p.ask(t.Sub(p.now))
	}
}
