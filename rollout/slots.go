// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout/protocol"
)

// Holders know whether somebody who has borrowed a slot is still there.
type Holders interface {
	// Gone reports whether there is nobody of that name with that UID any more, by the word of the API server and not of a cache.
	Gone(ctx context.Context, name, uid string) (bool, error)
}

// Slots lends places of a ledger to others who disturb nodes, so that they and the rollouts never exceed the caps together: it is the budget of package
// machine as it is. Each change is one compare-and-swap on the ledger, and the caps are checked on the new one. Ledger is required.
//
// A slot is freed by facts: by its holder, and where the ledger is full, because the API server says that there is no such holder any more. A ledger that is lost
// loses what was lent; its finalizer is there to keep it.
type Slots struct {
	Ledger LedgerStore
	// Caps bind, besides those of the rollouts: give the rollouts' controller the same ones. Unless one of them has no key, and so counts all nodes, one at a
	// time besides.
	Caps []protocol.Cap
	// Keys are what a node counts for, as its zone; nil is nothing.
	Keys func(node string) []string
	// Absent are the nodes that are away for other reasons; nil is none.
	Absent func(ctx context.Context) ([]protocol.Absent, error)
	// Holders are asked before a full ledger refuses a loan. Without them the slot of somebody who is gone stays.
	Holders Holders
}

func (s *Slots) caps() []protocol.Cap {
	if slices.ContainsFunc(s.Caps, func(c protocol.Cap) bool { return c.Key == "" }) {
		return s.Caps
	}
	return append(slices.Clone(s.Caps), protocol.Cap{Max: 1, From: "the default"})
}

// Take lends a slot to a holder, for a node that may be empty. He has one at a time, by his UID: it becomes this loan.
func (s *Slots) Take(ctx context.Context, name, uid, id, node, nodeUID string) (done bool, blocked string, err error) {
	loan := protocol.Loan{Holder: uid, Name: name, ID: id, Node: node, UID: nodeUID}
	if s.Keys != nil && node != "" {
		loan.Keys = s.Keys(node)
	}
	var absent []protocol.Absent
	if s.Absent != nil {
		if absent, err = s.Absent(ctx); err != nil {
			return false, "", fmt.Errorf("borrow a slot for %q: %w", name, err)
		}
	}
	_, err = Update(ctx, s.Ledger, true, func(l protocol.Ledger) (protocol.Ledger, error) {
		blocked = ""
		next, err := l.Borrow(loan, s.caps(), absent)
		if !errors.Is(err, protocol.ErrRefused) {
			return next, err
		}
		freed, sweep := s.freed(ctx, l)
		if sweep != nil {
			return l, errors.Join(err, sweep)
		}
		if next, err = freed.Borrow(loan, s.caps(), absent); errors.Is(err, protocol.ErrRefused) {
			blocked = err.Error()
			return freed, nil
		}
		return next, err
	})
	if err != nil {
		return false, "", fmt.Errorf("borrow a slot for %q: %w", name, err)
	}
	return blocked == "", blocked, nil
}

// freed is the ledger without the slots of holders that are gone.
func (s *Slots) freed(ctx context.Context, l protocol.Ledger) (protocol.Ledger, error) {
	if s.Holders == nil {
		return l, nil
	}
	for _, slot := range l.Slots {
		name, uid, ok := slot.Borrower()
		if !ok {
			continue
		}
		gone, err := s.Holders.Gone(ctx, name, uid)
		if err != nil {
			return l, fmt.Errorf("ask for %q, which has a slot: %w", name, err)
		}
		if gone {
			l = l.Return(uid, "")
		}
	}
	return l, nil
}

// Loan returns the ID of what a holder has; there is false if he has nothing.
func (s *Slots) Loan(ctx context.Context, name, uid string) (id string, there bool, err error) {
	if err := option.CheckRequired(
		"rollout.Slots.Loan", "Slots.Ledger", s.Ledger, "see rollout/kube.NewLedgerStore",
	); err != nil {
		return "", false, err
	}
	l, _, err := s.Ledger.Load(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("look for the slot of %q: %w", name, err)
	}
	slot := l.Loan(uid)
	if slot == nil {
		return "", false, nil
	}
	return slot.LoanID(), true, nil
}

// Free takes the slot of a holder back, if it is that loan; an empty ID is any of his. It is idempotent, and no error for one that has none.
func (s *Slots) Free(ctx context.Context, name, uid, id string) error {
	err := s.change(ctx, func(l protocol.Ledger) (protocol.Ledger, error) { return l.Return(uid, id), nil })
	if err != nil {
		return fmt.Errorf("give back the slot of %q: %w", name, err)
	}
	return nil
}

// Fail says that a holder has failed with the node. Its slot counts as a failed node for the detectors of the rollouts that have it; a critical one stops the
// whole domain at once, until the slot is given back. It is idempotent, and nothing for a holder without a slot.
func (s *Slots) Fail(ctx context.Context, name, uid, reason string, critical bool) error {
	err := s.change(ctx, func(l protocol.Ledger) (protocol.Ledger, error) {
		if l.Loan(uid) == nil {
			return l, nil
		}
		return l.Default(uid, fmt.Sprintf("%s has failed: %s", name, reason), critical)
	})
	if err != nil {
		return fmt.Errorf("note the failure of %q: %w", name, err)
	}
	return nil
}

// change updates a ledger; one that does not exist stays so.
func (s *Slots) change(ctx context.Context, f func(protocol.Ledger) (protocol.Ledger, error)) error {
	_, err := Update(ctx, s.Ledger, false, f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Left is how many more slots there are, as far as the caps that count all nodes say; 0 if that can't be known.
func (s *Slots) Left(ctx context.Context) int {
	if s.Ledger == nil {
		return 0
	}
	l, _, err := s.Ledger.Load(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || l.ClosedFor("") != nil {
		return 0
	}
	var absent []protocol.Absent
	if s.Absent != nil {
		if absent, err = s.Absent(ctx); err != nil {
			return 0
		}
	}
	left := protocol.Cap{Max: 1 << 30}
	for _, c := range s.caps() {
		if c.Key == "" && c.Max < left.Max {
			left = c
		}
	}
	return max(0, left.Max-l.Used("", absent))
}
