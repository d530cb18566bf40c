// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// unmarked is how long after its admission a node may be without its mark, which waits for the cordon. The autoscaler
// takes longer to find a node that it does not need.
const unmarked = 10 * time.Second

// intrusive is the key of slots whose node is to be cordoned.
const intrusive = "class/" + string(rollout.Intrusive)

// Annotations of Nodes.
const (
	// HeldAnnotation is on a Node while it has a slot: the mark of maintenance. Its content is this package's.
	HeldAnnotation = "rollout.belay.dev/held"
	// ScaleDownAnnotation keeps the cluster-autoscaler from removing a node. It is "true" while the node has a slot,
	// unless somebody else had set it before. On a node that is to be cordoned it may come with the cordon, or some
	// seconds after the admission, whichever is first.
	ScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// lastAnnotation stays on a Node that had a slot: the number of its last attempt. A controller that knows of no
	// newer state of the node than one in this attempt, or in one before, looks before it cordons the node. It may be
	// removed.
	lastAnnotation = "rollout.belay.dev/last-attempt"
)

// A mark is the content of [HeldAnnotation].
type mark struct {
	Attempt protocol.Attempt `json:"attempt"`
	Rollout string           `json:"rollout"`
	// From is what the node ran before, Baseline what its health was. Lost: that is not known any more, and the node has
	// been disrupted since.
	From     string `json:"from,omitempty"`
	Baseline string `json:"baseline,omitempty"`
	Lost     bool   `json:"lost,omitempty"`
	// ScaleDown: the autoscaler's annotation is ours.
	ScaleDown bool `json:"scaleDown,omitempty"`
	// Closed: the node was cordoned for the attempt. If it is not any more, it was given back.
	Closed bool `json:"closed,omitempty"`
	there  bool
}

// markOf reads the mark. One that can't be read is there, and says nothing: it is written anew, or removed.
func markOf(annotations map[string]string) (m mark) {
	text, there := annotations[HeldAnnotation]
	if there && json.Unmarshal([]byte(text), &m) != nil {
		m = mark{}
	}
	m.there = there
	return m
}

// set is the change of annotations that makes want the mark.
func (m mark) set(annotations map[string]string, want mark) (mark, map[string]*string) {
	change := map[string]*string{}
	is, there := annotations[ScaleDownAnnotation]
	want.ScaleDown = m.ScaleDown && is == "true"
	if !there {
		yes := "true"
		change[ScaleDownAnnotation], want.ScaleDown = &yes, true
	}
	text, _ := json.Marshal(want) // strings, numbers and truths
	held := string(text)
	change[HeldAnnotation], want.there = &held, true
	return want, change
}

// drop is the change of annotations that removes the mark, and the autoscaler's as far as it is ours and as we have
// set it. It leaves which attempt it was.
func (m mark) drop(annotations map[string]string) map[string]*string {
	change := map[string]*string{HeldAnnotation: nil}
	if m.Attempt > 0 {
		last := strconv.FormatInt(int64(m.Attempt), 10)
		change[lastAnnotation] = &last
	}
	if m.ScaleDown && annotations[ScaleDownAnnotation] == "true" {
		change[ScaleDownAnnotation] = nil
	}
	return change
}

// isOver reports whether a Node that is not cordoned for an attempt seems to have been given back after it, or after
// a later one. It need not: somebody may have taken the cordon off, or attempts are counted anew.
func (m mark) isOver(annotations map[string]string, k protocol.Attempt) bool {
	if m.Attempt > k || m.Attempt == k && m.Closed {
		return true
	}
	last, err := strconv.ParseInt(annotations[lastAnnotation], 10, 64)
	return err == nil && protocol.Attempt(last) >= k
}

// overtake is set with the cordon, on a version of the Node that may be newer than what was decided on: what a later
// attempt has marked stays, and so does what is known of the node as it was before this slot.
func (m mark) overtake(annotations map[string]string, want mark) (mark, map[string]*string) {
	want.Closed = true
	switch {
	case m.Attempt > want.Attempt || m.Attempt == want.Attempt && m.Closed:
		return m, nil
	case m.there && m.Attempt == want.Attempt:
		m.Closed = true
		return m.set(annotations, m)
	}
	if m.tells() && (m.Rollout == want.Rollout || want.Lost) {
		want.From, want.Baseline, want.Lost = m.From, m.Baseline, false
	}
	return m.set(annotations, want)
}

// tells reports whether the mark says what the node was before it was disrupted.
func (m mark) tells() bool { return m.there && m.Rollout != "" && !m.Lost }

// marked makes sure that the node carries the mark of its slot, or gets it with its cordon, and reports whether it
// does. The baseline is recorded with the first attempt in the slot. A node of which there is none is not granted.
func (p *pass) marked(i int, n *nodeView, s *protocol.Slot, d rollout.Decision) bool {
	if n.mark.of(s) {
		return true
	}
	rides := p.rides(i, n, s, d)
	if rides && d.Do != protocol.EventGrant {
		return true
	}
	want, ok := p.wants(n, s)
	if rides || !ok {
		return ok || d.Do == protocol.EventRevoke
	}
	next, change := n.mark.set(n.Annotations, want)
	if err := p.annotate(n, change); err != nil {
		p.note("controller: marking node %q", err, n.Name)
		return false
	}
	n.mark = next
	return true
}

// of reports whether the mark is that of a slot.
func (m mark) of(s *protocol.Slot) bool {
	return m.there && m.Attempt == s.Attempt && m.Rollout == s.Rollout
}

// rides reports whether the mark of a node comes with its cordon, which it lacks: as long as nothing was done to the
// node, the autoscaler may take it. One that waits for its agent does not go without for long.
func (p *pass) rides(i int, n *nodeView, s *protocol.Slot, d rollout.Decision) bool {
	if _, ok := p.c.o.Drainer.(MarkingDrainer); !ok || n.held || !slices.Contains(s.Keys, intrusive) {
		return false
	}
	switch {
	case d.State == protocol.Admitted, d.State == protocol.Granted, d.Do == protocol.EventAdmit:
		since := p.decided[i].Progress.Nodes[d.UID].Admitted
		if since.IsZero() {
			since = p.now
		}
		left := unmarked - p.now.Sub(since)
		p.again(left)
		return left > 0
	}
	return d.Cordon && d.Do != protocol.EventUndo // it is cordoned below
}

// unmark removes the mark of a node that has no slot.
func (p *pass) unmark(n *nodeView) {
	if err := p.annotate(n, n.mark.drop(n.Annotations)); err != nil {
		p.note("controller: removing the mark of node %q", err, n.Name)
		return
	}
	n.mark = mark{}
}

// wants is the mark that the node of a slot is to carry, with what is to be known of it when it comes back: what its
// mark says, or what is true now if it has none yet. Where it was disrupted already, what is true now is no measure:
// if there is no mark, that is lost. ok is false if that can't be found out.
func (p *pass) wants(n *nodeView, s *protocol.Slot) (want mark, ok bool) {
	want = mark{Attempt: s.Attempt, Rollout: s.Rollout, From: n.mark.From, Baseline: n.mark.Baseline}
	late := p.isDisrupted(n, s)
	if n.mark.tells() && (late || n.mark.Rollout == s.Rollout) {
		return want, true
	}
	if late && p.c.o.Health != nil {
		if late, ok = p.isLate(n, s); late || !ok {
			want.Lost = late
			return want, ok
		}
	}
	if want.From, want.Baseline = "", ""; n.shadow != nil {
		want.From = n.shadow.Runs.Name
	}
	var err error
	if h := p.c.o.Health; h != nil {
		err = p.call(func(ctx context.Context) (err error) { want.Baseline, err = h.Baseline(ctx, n.Node); return err })
	}
	if err != nil {
		p.note("controller: recording the health of node %q", err, n.Name)
	}
	return want, err == nil
}

// isDisrupted reports whether the node of a slot may have been disrupted in it, as far as its shadow was read.
func (p *pass) isDisrupted(n *nodeView, s *protocol.Slot) bool {
	sh := protocol.Shadow{Node: s.Node, UID: s.UID}
	if n.shadow != nil {
		sh = n.shadow.Shadow
	}
	return p.disrupts(n, s, sh)
}

// isLate asks the API server whether the node of a slot was disrupted in it; ok is false if that is not known.
func (p *pass) isLate(n *nodeView, s *protocol.Slot) (late, ok bool) {
	var sh Shadow
	err := p.call(func(ctx context.Context) (err error) { sh, err = p.c.o.Shadows.Get(ctx, n.Name); return err })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.note("controller: looking at the shadow of node %q, which has lost its mark", err, n.Name)
	}
	if err != nil || sh.UID != n.UID || !sh.Report.Known {
		return false, false
	}
	return p.disrupts(n, s, sh.Shadow), true
}

func (p *pass) disrupts(n *nodeView, s *protocol.Slot, sh protocol.Shadow) bool {
	switch protocol.StateOf(protocol.Ledger{Slots: []protocol.Slot{*s}}, sh) {
	case protocol.Committed:
		return n.held && n.attempt == s.Attempt || p.c.mind.drains[n.UID].attempt == s.Attempt
	case protocol.Proceeding, protocol.Applying, protocol.Verifying, protocol.Done, protocol.FailedBroken, protocol.Retrying, protocol.Unknown:
		return true
	}
	return false
}

// unmeasured is the verdict on a node that was disrupted, and of which it is not known what it was before; is is
// false if that is known. Nobody can say then that its work has come back: it is for a person to look. Where only the
// list of Nodes is behind, the next one shows the mark.
func (p *pass) unmeasured(n *nodeView) (v rollout.Verdict, is bool) {
	s := p.ledger.Slot(n.UID)
	if s == nil || n.mark.tells() {
		return v, false
	}
	if _, _, lent := s.Borrower(); lent || !p.isDisrupted(n, s) {
		return v, false
	}
	if !n.mark.Lost {
		return rollout.Verdict{RetryAfter: soon}, true
	}
	return rollout.Verdict{
		Answer: rollout.Deny, Reason: "BaselineLost", // not Unknown, of which nobody is told why
		Message: "what it was before is not known: the annotation " + HeldAnnotation + " was removed while it was disrupted; look at its work, and acknowledge the node",
	}, true
}

func (p *pass) annotate(n *nodeView, change map[string]*string) error {
	return p.write(func(ctx context.Context) error {
		next, err := p.c.o.Fleet.Annotate(ctx, n.Node, change)
		if err == nil {
			n.Node = next
		}
		return err
	})
}
