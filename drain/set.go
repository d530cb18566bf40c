// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Set is a number of nodes to be drained in one maintenance.
type Set struct {
	// Request is what is wanted of each node; its Node, NodeUID and Last are not used.
	Request Request
	// Groups lists node names. A group starts when every node of the one before it is drained, or has ended otherwise and
	// SkipFailed is set. Within a group the order is kept. A set in no order is one group. A Node that is deleted after
	// its drain has begun counts as drained.
	Groups [][]string
	// MaxNodes is how many nodes may be draining at any time: a number, or a percent of all nodes of the set, rounded
	// down, at least one. The zero value means one. A node on which none but pods are left that they themselves or
	// their budgets keep gives its place to the next one. It goes on as soon as one of them can leave, beside the others.
	MaxNodes intstr.IntOrString
	// LeaveOpen leaves the nodes that wait for a place schedulable. Without it all nodes of a group are cordoned when the
	// group starts, so that no pod moves to a node from which it has to move again. That is one write more for each of
	// them. A set that stops before their turn opens them again before it is done. Set it for a set of all workers, and
	// where nodes are given back one by one: pods need a place. A policy with OutsideWindow Undo leaves them open too.
	LeaveOpen bool
	// NodeTimeout, when set, bounds the drain of each node from its beginning, within Request.Deadline.
	NodeTimeout time.Duration
	// SkipFailed lets the next node, and the next group, start although one has failed, or its deadline has passed. A node
	// that is blocked and not past its deadline goes on draining.
	SkipFailed bool
	// Last is the status that the previous pass returned, if the caller has kept it.
	Last *SetStatus
}

// A SetStatus is what one pass over a [Set] found and did.
type SetStatus struct {
	// Nodes are in the order of the groups.
	Nodes []Status `json:"nodes"`
	// Done is true when every node has come as far as its mode goes, has failed, or is past its deadline. A node that is blocked or paused
	// without a deadline is not done: it goes on by itself when somebody has acted.
	Done bool `json:"done,omitempty"`
	// Reason and Message say why the set as a whole stands still, for example [Frozen].
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// waitingMode returns what a node of a drain needs that waits for its turn: a cordon, or the release of the one that it
// carries; empty for nothing.
func waitingMode(s Set, m *member) Mode {
	if s.Request.Mode != Drain || m.begun || m.visited && !m.ended() {
		return ""
	}
	if m.ended() { // it has had its turn, and did not begin
		return releaseIf(m.closed)
	}
	open := s.LeaveOpen || s.Request.Policy.OutsideWindow == UndoCordon
	switch m.status.Reason {
	case reasonSetStopped:
		return releaseIf(m.closed)
	case reasonWaitingForGroup:
		return releaseIf(m.closed && open)
	case reasonWaitingForSlot:
		if !open && (!m.closed || m.silent) {
			return Cordon
		}
		return releaseIf(m.closed && open)
	}
	return ""
}

func releaseIf(yes bool) Mode {
	if yes {
		return Release
	}
	return ""
}

// keepWaiting closes the nodes of the set that wait for a place, so that no pod of another node of it moves to them,
// and opens those that wait no longer. It returns when one of them wants another pass, and whether a name has turned out to
// have no Node. A node that can't be closed is tried again at its own time, beside the others.
func keepWaiting(ctx context.Context, d *Drainer, s Set, members []*member, todo *agenda) (
	after time.Duration, missing bool, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, setWorkers)
	for _, m := range members {
		mode := waitingMode(s, m)
		if mode == "" || ctx.Err() != nil {
			continue
		}
		if wait, rests := todo.mayRest(m.node, d.o.Now()); rests {
			after = sooner(after, wait)
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			r := s.Request
			r.Node, r.Mode, r.Last, r.cordonFor = m.node, mode, nil, cordonAhead
			r.Policy.Soak = 0
			begin := todo.begin(m.node)
			forgetReplaced(ctx, d, r)
			st, a, failure := d.ReconcileRequest(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			after, err = sooner(after, a), errors.Join(err, terminalOf(failure))
			m.silent = isSilent(d, m.node)
			if m.closed = d.findEntry(m.node, r).isOf(modeWaiting); mode == Release || !m.closed {
				todo.done(m.node, begin, d.o.Now(), a)
			}
			switch {
			case st.Reason == NodeNotFound:
				st.Mode, missing = s.Request.Mode, true
				m.status = drainedIfGone(st, m.status.NodeUID)
			case failure != nil:
				m.status.Message = fmt.Sprintf("%s; its %s failed: %v", m.status.Message, mode, failure)
			}
		})
	}
	wg.Wait()
	return after, missing, err
}

// forgetReplaced drops what is known of a Node that waited and was made anew since: the name stands, and the new Node
// is the one that is meant.
func forgetReplaced(ctx context.Context, d *Drainer, r Request) {
	node, k := d.registry.newest(d.o.Cache, r.Node), key{r.Node, r.Holder}
	unlock, err := d.registry.lock(ctx, k)
	if err != nil {
		return
	}
	defer unlock()
	if m := d.registry.findMemory(k); m != nil && node != nil && m.uid != "" && m.uid != node.UID {
		d.registry.drop(k)
	}
}
