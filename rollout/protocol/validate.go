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
			return refuse(EventAdmit, RuleField, "%s is empty", f.name)
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
