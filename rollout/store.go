// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"github.com/belayproject/belay/rollout/protocol"
)

// ErrConflict means that a ledger, or another object of a rollout, is not the version any more on which the new one was decided, or exists already.
// Nothing was written.
var ErrConflict = errors.New("it has changed since it was read")

// ErrUnreadable means that what is stored is not a ledger that this version can read exactly as it was written: a hand has edited it, or a later version has
// written it. Nothing is decided on it.
var ErrUnreadable = errors.New("the ledger cannot be read")

// A LedgerStore keeps the one ledger of a disruption domain. Whether caps hold rests on it alone: package rollouttest has the suite that every
// store must pass.
type LedgerStore interface {
	// Load returns the ledger and its version. The version of an answer is never older than that of an answer that the same store has given
	// before. A ledger that does not exist is fs.ErrNotExist; one that cannot be read exactly as it was written is [ErrUnreadable],
	// and never an empty ledger.
	Load(ctx context.Context) (protocol.Ledger, string, error)
	// Store replaces the ledger of that version, and returns the version of the new one. An empty version creates it. [ErrConflict] means that
	// nothing was written. After any other error the ledger may be the old one or the new one.
	Store(ctx context.Context, l protocol.Ledger, version string) (string, error)
}

// A SeenLedger is a [LedgerStore] that watches the ledger besides, so that looking at it costs no call. What was seen may be older than what is
// stored: a Store on its version is refused then, and Load is to be called.
type SeenLedger interface {
	LedgerStore
	// Seen returns the newest ledger that is known, and its version: never one older than an answer of Load or Store. ok is false where Load has to
	// be called.
	Seen() (l protocol.Ledger, version string, ok bool)
}

// Update loads the ledger, lets change decide on it, and stores the result; after a conflict it does both again, as long as ctx lives. An error
// of change is returned as it is, and nothing is stored; nor is a ledger that change returns as it got it. A ledger that does
// not exist is passed as an empty one only with create.
func Update(ctx context.Context, s LedgerStore, create bool, change func(protocol.Ledger) (protocol.Ledger, error)) (protocol.Ledger, error) {
	for {
		l, err := updateOnce(ctx, s, create, change)
		if !errors.Is(err, ErrConflict) || ctx.Err() != nil {
			return l, err
		}
	}
}
