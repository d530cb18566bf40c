// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"context"
	"fmt"
	"slices"
)

// Options say how large the world is that [Explore] walks.
type Options struct {
	// Nodes is how many there are, at most 8; Cap is how many of them may be disrupted at a time; Attempts is how many the ledger
	// admits in all.
	Nodes, Cap, Attempts int
	// PerZone, if not 0, is how many nodes of a zone may be disrupted at a time. The nodes are in two zones, by turns.
	PerZone int
	// Abort lets somebody abort and resume at any time, which closes and opens the whole domain; Pause lets somebody else do so with the
	// rollout alone.
	Abort, Pause bool
	// Losses is how many times a shadow is deleted, at any time at which its finalizer allows it; with Hand also when it does not.
	Losses int
	Hand   bool
	// Retry lets a node be admitted again in its place, at any time.
	Retry bool
	// Phases lets every step of an attempt be a state, and an agent die between its disk and its report. Without it an attempt takes one
	// step from its commit to its end.
	Phases bool
	// Without takes one rule away.
	Without Without
	// Limit is how many states are walked at most; zero means 10 million.
	Limit int
}

// A Result is what was found.
type Result struct {
	// States is how many different ones were reached. Two that differ only in past versions of objects by which the same may be done are one.
	States int
	// Stuck is how many of them have no way to a state in which no node is disrupted or has a slot.
	Stuck int
	// Starved is how many of them, of those in which the ledger may still admit, have no way on which some node commits. Both are counted only of
	// a world that was walked to its end.
	Starved int
	// Complete: there are no others.
	Complete bool
	// Violation is the rule that was broken, and Trace the shortest way there; empty for none.
	Violation string
	Trace     []string
}

// mostNodes is how many nodes a world has at most, mostStates how many states are walked.
const (
	mostNodes  = 8
	mostStates = 100_000_000
)

// Explore walks all states, nearest first, until a rule is broken, the limit is reached, or there are no more. A world with more versions of an
// object than the walk has numbers for is an error.
func Explore(ctx context.Context, o Options) (Result, error) {
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	return newWalk(o).explore(ctx)
}

func (w *walk) explore(ctx context.Context) (Result, error) {
	w.visit(w.first(), -1)
	for at := 0; at < len(w.keys) && w.broken == ""; at++ {
		if at%4096 == 0 && ctx.Err() != nil {
			return w.result(false), ctx.Err()
		}
		if len(w.keys) >= w.o.Limit && w.o.Limit > 0 {
			return w.result(false), w.mistaken()
		}
		w.at = int32(at)
		w.expand(w.decode(w.keys[at]))
		if err := w.err(); err != nil {
			w.broken, w.bad = "", nil // it may be one of numbers alone
			return w.result(false), err
		}
	}
	if w.broken != "" {
		return w.result(false), nil
	}
	return w.result(true), w.mistaken()
}

func (o *Options) validate() error {
	if o.Nodes < 1 || o.Nodes > mostNodes {
		return fmt.Errorf("exploring: Nodes is %d, want 1 to %d", o.Nodes, mostNodes)
	}
	if o.Cap < 1 {
		return fmt.Errorf("exploring: Cap is %d, want 1 or more", o.Cap)
	}
	if o.PerZone < 0 {
		return fmt.Errorf("exploring: PerZone is %d, want 0 for none, or more", o.PerZone)
	}
	if o.Attempts < 1 || o.Attempts > 100 {
		return fmt.Errorf("exploring: Attempts is %d, want 1 to 100", o.Attempts)
	}
	if o.Losses < 0 || o.Losses > 100 {
		return fmt.Errorf("exploring: Losses is %d, want 0 to 100", o.Losses)
	}
	if !slices.Contains(Rules(), o.Without) {
		return fmt.Errorf("exploring: Without is %q, want one of %q", o.Without, Rules())
	}
	if o.Limit < 0 || o.Limit > mostStates {
		return fmt.Errorf("exploring: Limit is %d, want 0 to %d", o.Limit, mostStates)
	}
	if o.Limit == 0 {
		o.Limit = 10_000_000
	}
	return nil
}

// A Without is a rule that is taken away.
type Without string

// Rules that can be taken away.
const (
	// Nothing: all rules hold.
	Nothing Without = ""
	// LedgerCAS: a slot is admitted on any past version of the ledger, and stored whatever the live one is.
	LedgerCAS Without = "compare-and-swap of the ledger"
	// CommitCAS: the agent commits what it read in any past version of its shadow.
	CommitCAS Without = "compare-and-swap of the commit"
	// AttemptMatch: a node that has ended any attempt gives back the slot that it has.
	AttemptMatch Without = "match of the attempt at release"
	// Facts: a slot is freed by time.
	Facts Without = "release by facts alone"
	// EpochMark: a new shadow does not revoke what was admitted before.
	EpochMark Without = "epoch in a new shadow"
	// Finalizer: a shadow can be deleted at any time, and a new one counts as if its agent had spoken.
	Finalizer Without = "finalizer and recall of shadows"
	// Revocation: an abort is acknowledged as soon as the ledger is closed.
	Revocation Without = "revocation before the acknowledgement"
)

// Rules are all that can be taken away.
func Rules() []Without {
	return []Without{Nothing, LedgerCAS, CommitCAS, AttemptMatch, Facts, EpochMark, Finalizer, Revocation}
}
