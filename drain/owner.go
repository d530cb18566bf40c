// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isOfOtherRun reports whether the entry is of another run than the request's. Requests and entries without a run are
// of every run.
func (h *holder) isOfOtherRun(r Request) bool {
	return h != nil && h.Run != "" && r.Run != "" && h.Run != r.Run
}

// coversMode reports whether the entry is what a request for that mode wants. A cordon that is asked for by itself is
// more than one that a set has set ahead of a node's turn: it outlives the set.
func (h *holder) coversMode(mode Mode) bool {
	return h.Mode == mode || mode == modeWaiting || mode == Cordon && h.Mode != modeWaiting
}

// leavesPods reports whether an entry of that mode cordons the node and does nothing more.
func (m Mode) leavesPods() bool { return m == Cordon || m == modeWaiting }

// hasEnded reports whether its run does nothing more with the node.
func (h *holder) hasEnded(now time.Time) bool {
	return !h.Released.IsZero() || !h.Drained.IsZero() || h.Mode == Hold && !now.Before(h.Until)
}

// isLeftTo reports whether a run may end what another run has entered: of the same maintenance, and over or given up.
func (h *holder) isLeftTo(r Request, at time.Time) bool {
	return h.Maintenance == r.Maintenance && (h.hasEnded(at) || r.TakeOver != nil && r.TakeOver(h.Run))
}

// findOwner returns the holder's entry where a request must leave it alone, and why. known is the holder's entry as
// this process has last seen it as its own. A release without a run takes off any entry.
//
// Two processes that each enter their own would take the node from each other with every pass, and the end of one
// would open the node of the other. So a process that had the node and has lost it does not take it again
// ([Superseded]): to another run, to another maintenance, or to a hold in place of a drain. A run does not take it
// from a run that has not ended ([HeldByOtherRun]). Requests without runs that want the same share the entry, and its
// times.
func findOwner(now *holder, known *mark, r Request, at time.Time) (owner *holder, why Reason) {
	if r.Mode == Release || now == nil || !now.Released.IsZero() {
		return nil, reasonNone
	}
	had := hadBefore(known, r)
	if now.isOfOtherRun(r) {
		switch {
		case had != nil:
			return now, Superseded
		case !now.hasEnded(at) && (r.TakeOver == nil || !r.TakeOver(now.Run)):
			return now, HeldByOtherRun
		}
		return nil, reasonNone
	}
	if had != nil && (now.Maintenance != r.Maintenance || isTakenByMode(had, now, r.Mode)) {
		return now, Superseded
	}
	return nil, reasonNone
}

// hadBefore returns the entry of this run and maintenance that the process has seen as its own, nil if there was none.
func hadBefore(known *mark, r Request) *holder {
	if known == nil || known.Holders[0].isOfOtherRun(r) || known.Holders[0].Maintenance != r.Maintenance {
		return nil
	}
	return &known.Holders[0]
}

// isTakenByMode reports whether another process has put a hold in place of the request's drain, or the other way.
func isTakenByMode(had, now *holder, mode Mode) bool {
	return had.Mode == mode && !mode.leavesPods() && now.Mode != mode && !now.Mode.leavesPods()
}

// takeOver makes a node that another run has left, or is made to leave, this run's: a drain or hold of the same
// maintenance goes on, with its times. Of another one nothing is written here; what the request wants is entered in
// its place. It reports whether the pass may go on.
func takeOver(ctx context.Context, p *pass, from holder) (bool, error) {
	if from.Maintenance != p.r.Maintenance || from.hasEnded(p.now) {
		return true, nil
	}
	run := from.Run
	from.Run = p.r.Run
	ok, err := p.write(ctx, nodeChange{mark: p.mark.with(from)})
	if !ok {
		p.st.Phase = Pending
		return false, err
	}
	p.event(corev1.EventTypeNormal, "TakenOver", fmt.Sprintf("run %q goes on in place of run %q", p.r.Run, run))
	return true, nil
}

// describeOwner says who has the node, and how it is had in its place.
func describeOwner(p *pass, by *holder, why Reason) string {
	if why == HeldByOtherRun {
		return fmt.Sprintf("run %q of holder %q has node %q since %s, for maintenance %q: wait for its end, release the "+
			"node, or take it over", by.Run, by.Holder, p.node.Name, by.Since.UTC().Format(time.RFC3339), by.Maintenance)
	}
	if by.isOfOtherRun(p.r) {
		return fmt.Sprintf("run %q has taken the place of run %q: %s", by.Run, p.r.Run, begunSince(by, p.node.Name))
	}
	return begunSince(by, p.node.Name)
}

// begunSince says what the entry of a holder has taken the place of another one for, and when.
func begunSince(h *holder, node string) string {
	return fmt.Sprintf("holder %q has begun maintenance %q of node %q since, at %s, with mode %s",
		h.Holder, h.Maintenance, node, h.Since.UTC().Format(time.RFC3339), h.Mode)
}

// releasedByOther ends a run whose entry and cordon another client has taken off: what that client wants is an open
// node. It also ends one whose node another run has had since. It reports whether it has. A holder without runs begins
// anew.
func releasedByOther(p *pass) bool {
	had := p.r.Run != "" && p.memory.mine != nil && p.r.Mode != Release
	if had && p.memory.told.superseded && p.mark.of(p.r.Holder) == nil {
		leaveToOther(p, Superseded, fmt.Sprintf("another run has had node %q since, and it is over", p.node.Name))
		return true
	}
	if !had || p.mark.of(p.r.Holder) != nil || p.node.Spec.Unschedulable {
		return false
	}
	leaveToOther(p, Superseded, fmt.Sprintf("another client has released node %q", p.node.Name))
	return true
}

// leaveToOther ends the request for a node that is another process's.
func leaveToOther(p *pass, why Reason, message string) {
	p.d.scheduler.forget(p.r.Node)
	p.st.Phase, p.st.Outcome, p.st.Reason, p.st.Message = Failed, OutcomeFailed, why, message
}

// readOwners reads the Node from the API server where it matters who has set its cordon, and the cache does not say. It
// reports whether the pass may go on.
func readOwners(ctx context.Context, p *pass, m mark) (bool, error) {
	cordon, _ := fieldOwners(p.node)
	if len(cordon) > 0 || !m.opensNode(p.node, mark{}) {
		return true, nil
	}
	node, err := p.d.o.Client.GetNode(ctx, p.node.Name)
	switch {
	case apierrors.IsNotFound(err):
		p.ask(soon)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking whose cordon is on node %q: %w", p.node.Name, err)
	case node.UID != p.node.UID || node.ResourceVersion != p.node.ResourceVersion:
		p.d.registry.wrote(p.d.o.Cache, node)
		p.st.Reason, p.st.Message = reasonWriteConflict, fmt.Sprintf("node %q has changed since it was read", p.node.Name)
		p.ask(soon)
		return false, nil
	}
	p.node = node
	return true, nil
}

// A rivalry is how often this process has written to a node what others undo, and when it may write that again. Each
// write makes the next one wait longer, so that no two clients write without an end.
type rivalry struct {
	writes int
	next   time.Time
}

// recordWrite takes in a write. Of those before, nothing counts once the others have left the node alone for a while.
func (r *rivalry) recordWrite(now time.Time) {
	if !now.Before(r.next.Add(lastFallback)) {
		r.writes = 0
	}
	r.next = now.Add(fallback(r.writes))
	r.writes++
}

// waitTime returns how long the next write has to wait. The first ones, which may have their reasons, don't.
func (r *rivalry) waitTime(now time.Time, free int) time.Duration {
	if r.writes < free {
		return 0
	}
	return max(0, r.next.Sub(now))
}

// freeEntries is how many entries a process writes to a node without a wait: those of a drain that takes the place of
// another one.
const freeEntries = 2

// waitForRivals reports whether the holder's entry may not be written yet, and says why in the status: others have
// taken it off the node, or replaced it, again and again. mine is what is there in its place, nil for nothing.
func waitForRivals(p *pass, mine *holder) bool {
	wait := p.memory.entries.waitTime(p.now, freeEntries)
	if wait == 0 {
		return false
	}
	p.st.Reason = Superseded
	p.st.Message = fmt.Sprintf("the entry of holder %q was removed from node %q again", p.r.Holder, p.node.Name)
	if mine != nil && mine.Released.IsZero() {
		p.st.Message = begunSince(mine, p.node.Name)
	}
	p.st.Message += fmt.Sprintf(": it is written again in %s", wait.Round(time.Second))
	p.ask(wait)
	return true
}
