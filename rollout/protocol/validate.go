// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"
)

func (a Admission) validate() error {
	for _, f := range []struct{ name, value string }{{"shadow.node", a.Shadow.Node}, {"shadow.uid", a.Shadow.UID}, {"rollout", a.Rollout}} {
		if f.value == "" {
			return refuse(EventAdmit, ruleField, "%s is empty", f.name)
		}
	}
	return nil
}

// Validate reports everything that is wrong with a ledger that was read: one that is written by hand, or by a version that means
// something else. No decision may be made on such a ledger.
func (l Ledger) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.Epoch < 0 {
		bad("epoch is %d, want 0 or more", l.Epoch)
	}
	if l.Fence < 0 || l.Fence > l.Epoch {
		bad("fence is %d, want 0 to %d, the epoch", l.Fence, l.Epoch)
	}
	errs = append(errs, l.validateSlots()...)
	for i, c := range l.Closures {
		if c.Request == "" {
			bad("closures[%d]: request is empty, so nothing could open it", i)
		}
	}
	return errors.Join(errs...)
}

func (l Ledger) validateSlots() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	nodes, uids, attempts := map[string]int{}, map[string]int{}, map[Attempt]int{}
	for i, s := range l.Slots {
		at := fmt.Sprintf("slots[%d]", i)
		if s.Node == "" || s.UID == "" || s.Rollout == "" {
			bad("%s: node is %q, uid %q, rollout %q, want none of them empty", at, s.Node, s.UID, s.Rollout)
		}
		if s.Attempt < 1 || s.Attempt > l.Epoch {
			bad("%s: attempt is %d, want 1 to %d, the epoch", at, s.Attempt, l.Epoch)
		}
		if s.State.rank() < 0 {
			bad("%s: state is %q, want none, %q, %q or %q", at, s.State, SlotSuspect, SlotBroken, SlotQuarantined)
		}
		if slices.Contains(s.Keys, "") {
			bad("%s: a key is empty, which stands for all nodes", at)
		}
		for _, double := range []struct {
			what string
			seen bool
		}{{"node", nodes[s.Node] > 0}, {"uid", uids[s.UID] > 0}, {"attempt", attempts[s.Attempt] > 0}} {
			if double.seen {
				bad("%s: another slot has the same %s", at, double.what)
			}
		}
		nodes[s.Node]++
		uids[s.UID]++
		attempts[s.Attempt]++
	}
	return errs
}

// Follows reports everything by which a ledger can't be the next version of one that was stored before: by whatever has happened meanwhile. The epoch and the
// fence never decrease; a UID is of one node; the attempt of a slot never decreases, and as long as it is the same, its rollout is, and its state only gets worse.
func (l Ledger) Follows(was Ledger) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.Epoch < was.Epoch {
		bad("epoch is %d, want %d or more, as it was", l.Epoch, was.Epoch)
	}
	if l.Fence < was.Fence {
		bad("fence is %d, want %d or more, as it was", l.Fence, was.Fence)
	}
	old := make(map[string]*Slot, len(was.Slots))
	for i := range was.Slots {
		old[was.Slots[i].UID] = &was.Slots[i]
	}
	for i := range l.Slots {
		if o := old[l.Slots[i].UID]; o != nil {
			if err := l.Slots[i].follows(o); err != nil {
				bad("slots[%d]: %w", i, err)
			}
		}
	}
	return errors.Join(errs...)
}

// follows reports by what a slot can't be that of its node after another version of it.
func (s *Slot) follows(o *Slot) error {
	switch {
	case s.Node != o.Node:
		return fmt.Errorf("node is %q, and the UID is that of node %q", s.Node, o.Node)
	case s.Attempt < o.Attempt:
		return fmt.Errorf("attempt is %d, want %d or more, as it was", s.Attempt, o.Attempt)
	case s.Attempt > o.Attempt:
		return nil
	case s.Rollout != o.Rollout:
		return fmt.Errorf("rollout is %q, want %q as long as the attempt is %d", s.Rollout, o.Rollout, o.Attempt)
	case s.State.rank() < o.State.rank():
		return fmt.Errorf("state is %q, want none that is better than %q", s.State, o.State)
	}
	return nil
}
