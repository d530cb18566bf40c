// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/option"
)

// setWorkers is how many nodes of a set are looked at at once.
const setWorkers = 16

// passWorkers is how many nodes of a set have a pass at once. A pass mostly waits for answers to evictions, which the
// Scheduler bounds; with fewer, each of 50 nodes would wait for three others.
const passWorkers = 128

// ReconcileSet is one bounded pass over a set of nodes; what it returns is as in [Drainer.ReconcileRequest].
func (d *Drainer) ReconcileSet(ctx context.Context, s Set) (SetStatus, time.Duration, error) {
	if d == nil || d.registry == nil {
		return SetStatus{}, 0, option.NotMade("drain.Drainer.ReconcileSet", "drain.New")
	}
	return d.reconcileSet(ctx, s, nil)
}

// reconcileSet leaves out the nodes that the agenda knows to need no pass yet; a nil agenda leaves out none.
func (d *Drainer) reconcileSet(ctx context.Context, s Set, todo *agenda) (SetStatus, time.Duration, error) {
	if err := s.Validate(); err != nil {
		return SetStatus{}, 0, err
	}
	members := d.members(s)
	after := todo.leaveOut(members, d.o.Now())
	var errs []error
	for ctx.Err() == nil {
		chosen := admit(members, slots(s), s.SkipFailed, s.Request.Mode)
		a, missing, err := keepWaiting(ctx, d, s, members, todo)
		after = sooner(after, a)
		if errs = append(errs, err); missing {
			continue // which may stop the set before it begins the next node
		}
		if len(chosen) == 0 {
			break
		}
		a, err = d.reconcileAll(ctx, s, chosen, todo)
		after = sooner(after, a)
		errs = append(errs, err)
	}
	return setStatus(members, s), after, errors.Join(errs...)
}

// A member is one node of a set in a pass.
type member struct {
	node    string
	group   int
	status  Status
	begun   bool // has been cordoned for this maintenance, or may have been
	visited bool // in this pass
	closed  bool // waits for its turn, and carries the entry that closes it meanwhile
	silent  bool // its conditions do not say yet that its maintenance is planned, and they are to
}

// ended reports whether the node will not change by itself, and so needs no place.
func (m *member) ended() bool {
	return m.status.Phase == Drained || m.failed() || m.status.Phase == Released
}

// failed reports whether it ended without being drained.
func (m *member) failed() bool {
	return m.status.Phase == Failed || m.status.Reason == reasonDeadlinePassed
}

// members lists the nodes of a set with what is known of them before the pass: from the marks, then from the last status.
func (d *Drainer) members(s Set) []*member {
	last := map[string]Status{}
	if s.Last != nil {
		for _, st := range s.Last.Nodes {
			last[st.Node] = st
		}
	}
	var out []*member
	for g, group := range s.Groups {
		for _, name := range group {
			m := &member{node: name, group: g, status: Status{Node: name, Holder: s.Request.Holder, Maintenance: s.Request.Maintenance,
				Mode: s.Request.Mode, Phase: Pending}}
			if st, ok := last[name]; ok && st.Maintenance == s.Request.Maintenance && st.Mode == s.Request.Mode {
				m.status = st
			}
			entry := d.findEntry(name, s.Request)
			m.begun = m.status.underWay() || entry.isOf(s.Request.Mode) || d.doubtful(name, s.Request)
			m.closed = entry.isOf(modeWaiting)
			m.silent = isSilent(d, name)
			if node := d.registry.newest(d.o.Cache, name); node != nil && !m.begun {
				m.status.NodeUID = node.UID
			}
			out = append(out, m)
		}
	}
	return out
}

// underWay reports whether the node has been cordoned for the drain, as far as its status knows.
func (s Status) underWay() bool {
	return !s.Started.IsZero() && s.Phase != Pending && s.Phase != Released && s.Phase != Failed
}

// findEntry returns the holder's entry for this maintenance on the node, nil if there is none.
func (d *Drainer) findEntry(name string, r Request) *holder {
	node := d.registry.newest(d.o.Cache, name)
	if node == nil {
		return nil
	}
	m, err := d.registry.markOf(node)
	if err != nil {
		return nil
	}
	h := m.of(r.Holder)
	if h == nil || h.Maintenance != r.Maintenance || !h.Released.IsZero() {
		return nil
	}
	if h.isOfOtherRun(r) && (r.TakeOver == nil || !r.TakeOver(h.Run)) {
		return nil
	}
	return h
}

// isOf reports whether the entry is of that mode.
func (h *holder) isOf(mode Mode) bool { return h != nil && h.Mode == mode }

// doubtful reports whether the node may have been cordoned for the drain: it keeps its place until that is known.
func (d *Drainer) doubtful(name string, r Request) bool {
	return r.Mode == Drain && d.registry.doubtful(key{name, r.Holder}, r.Maintenance)
}

// slots is how many nodes may be draining at once.
func slots(s Set) int {
	total := 0
	for _, g := range s.Groups {
		total += len(g)
	}
	n := 1
	if s.MaxNodes != (intstr.IntOrString{}) {
		if v, err := intstr.GetScaledValueFromIntOrPercent(&s.MaxNodes, total, false); err == nil {
			n = max(v, 1)
		}
	}
	return n
}

// admit chooses the nodes to look at next, and says of the others why they wait: first every node that has begun, then, while there are
// places, the next ones of the first group that is not done. It is pure; a pass calls it until it returns none.
func admit(members []*member, slots int, skipFailed bool, mode Mode) []*member {
	chosen := unvisited(members, mode)
	if len(chosen) > 0 || mode != Drain {
		return chosen
	}
	active, group, failed := standing(members, skipFailed)
	active -= stuckNodes(members)
	for _, m := range members {
		if m.begun || m.ended() || m.visited { // one that was looked at stays off its node for a reason of its own
			continue
		}
		switch {
		case failed != nil:
			m.wait(reasonSetStopped, fmt.Sprintf("node %q has not been drained: %s", failed.node, failed.status.Message))
		case m.group > group:
			m.wait(reasonWaitingForGroup, fmt.Sprintf("group %d is not done", group+1))
		case active+len(chosen) >= slots:
			m.wait(reasonWaitingForSlot, fmt.Sprintf("%d of %d nodes are draining", active+len(chosen), slots))
		default:
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// stuckNodes counts the nodes that have begun and on which none but pods are left that they themselves, or their
// budgets, keep: they need no place. An answer of the server, as that of a webhook which is away, may be over for all
// at once.
func stuckNodes(members []*member) int {
	n := 0
	for _, m := range members {
		own := func(b Blocker) bool { return b.Action == Block && slices.Contains(blockedByThemselves, b.Reason) }
		others := slices.ContainsFunc(m.status.Blockers, func(b Blocker) bool { return !own(b) })
		if m.begun && !m.ended() && m.status.Phase == Draining && len(m.status.Blockers) > 0 && !others {
			n++
		}
	}
	return n
}

// blockedByThemselves are the reasons that lie in a pod or its budget.
var blockedByThemselves = []Reason{BudgetNeverAllows, reasonMultipleBudgets, Unmanaged, LocalStorage, InvalidBehavior,
	reasonLastReplica, reasonQuorumMember, reasonNowhereToGo, reasonBlockedByRule,
	reasonFinalizersRemain, reasonStuckTerminating}

// unvisited are the nodes that are looked at in any case and have not been: those that have begun, and all where no node has to wait for
// another.
func unvisited(members []*member, mode Mode) []*member {
	var out []*member
	for _, m := range members {
		if !m.visited && (m.begun || mode != Drain) {
			out = append(out, m)
		}
	}
	return out
}

// standing counts the nodes that hold a place, and finds the first group that is not done and the first failure that stops the set.
func standing(members []*member, skipFailed bool) (active, group int, failed *member) {
	group = -1
	for _, m := range members {
		if m.begun && !m.ended() {
			active++
		}
		if m.failed() && !skipFailed && failed == nil {
			failed = m
		}
		if group < 0 && !m.ended() {
			group = m.group
		}
	}
	return active, group, failed
}

func (m *member) wait(reason Reason, message string) {
	m.status.Phase, m.status.Reason, m.status.Message = Pending, reason, message
}

// reconcileAll runs a pass over each of the chosen nodes, a bounded number at once.
func (d *Drainer) reconcileAll(ctx context.Context, s Set, chosen []*member, todo *agenda) (time.Duration, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var after time.Duration
	var errs []error
	places := make(chan struct{}, passWorkers)
	for _, m := range chosen {
		wg.Add(1)
		places <- struct{}{}
		go func() {
			defer func() { <-places; wg.Done() }()
			r := requestFor(s, m)
			begin := todo.begin(m.node)
			if !m.begun {
				forgetReplaced(ctx, d, r)
			}
			st, a, err := d.ReconcileRequest(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			m.visited = true
			if st.NodeUID != "" || r.Last == nil || err == nil {
				m.status = drainedIfGone(st, m.status.NodeUID)
			}
			m.begun = m.status.underWay() || d.doubtful(m.node, s.Request)
			if m.closed = d.findEntry(m.node, s.Request).isOf(modeWaiting); m.begun || s.Request.Mode != Drain {
				todo.done(m.node, begin, d.o.Now(), a) // else it may have to be opened before it rests
			}
			after = sooner(after, a)
			errs = append(errs, err)
		}()
	}
	wg.Wait()
	return after, errors.Join(errs...)
}

// requestFor is what the set wants of a node in this pass.
func requestFor(s Set, m *member) Request {
	r := s.Request
	r.Node, r.NodeUID, r.Last = m.node, "", nil
	if m.status.NodeUID != "" {
		last := m.status
		if r.Last = &last; !m.begun {
			last.NodeUID = "" // the name stands: a Node that was made anew meanwhile is the one
		}
	}
	if end := m.status.Started.Add(s.NodeTimeout); s.NodeTimeout > 0 && m.begun && !m.status.Started.IsZero() &&
		(r.Deadline.IsZero() || end.Before(r.Deadline)) {
		r.Deadline = end
	}
	return r
}

// drainedIfGone takes a Node that was there and is not any more for one that is drained. A name that never had a Node
// has failed. known is the UID that the set has seen.
func drainedIfGone(s Status, known types.UID) Status {
	s.NodeUID = cmp.Or(s.NodeUID, known)
	if s.Mode != Drain || s.Phase != Failed || s.NodeUID == "" || s.Reason != NodeNotFound {
		return s
	}
	s.Phase, s.Outcome, s.Blockers, s.Counts = Drained, OutcomeDrained, nil, Counts{Evicted: s.Counts.Evicted}
	s.Message = "the Node was deleted: " + s.Message
	return s
}

// sooner is the earlier of two wishes for the next pass; zero is no wish.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// setStatus says how the set stands.
func setStatus(members []*member, s Set) SetStatus {
	out := SetStatus{Done: true}
	for _, m := range members {
		out.Nodes = append(out.Nodes, m.status)
		if !restful(m.status, s.Request.Mode) {
			out.Done = false
		}
		if m.status.Reason == Frozen && out.Reason == "" {
			out.Reason, out.Message = Frozen, m.status.Message
		}
	}
	if s.Request.Mode != Drain {
		return out
	}
	opens := slices.ContainsFunc(members, func(m *member) bool { return m.closed && !m.begun && m.ended() })
	out.Done = out.Done && !opens
	if active, _, failed := standing(members, s.SkipFailed); failed != nil {
		out.Reason, out.Message = failed.status.Reason, fmt.Sprintf("node %q: %s", failed.node, failed.status.Message)
		out.Done = active == 0 && !slices.ContainsFunc(members, func(m *member) bool { return m.closed })
	}
	return out
}

// restful reports whether a node has come as far as its mode goes.
func restful(s Status, mode Mode) bool {
	switch s.Phase {
	case Drained, Failed, Released, HoldEnded:
		return true
	case Cordoned:
		return mode == Cordon
	}
	return s.Reason == reasonDeadlinePassed || s.Phase == Soak && s.Reason == Frozen
}
