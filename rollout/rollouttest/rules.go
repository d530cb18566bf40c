// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// violation names the rule that does not hold in a state.
func (w *walk) violation(s state) string {
	l := w.ledgers.all[s.ledger]
	for _, limit := range w.caps {
		if n := used(l, limit.Key); n > limit.Max {
			return fmt.Sprintf("I1: %d slots%s, the cap is %d", n, ofKey(limit.Key), limit.Max)
		}
	}
	down := 0
	for i, n := range s.nodes {
		if n.down {
			down++
		}
		if n.down && l.Slot(nodeName(i)) == nil {
			return fmt.Sprintf("I1: %s is disrupted and has no slot", nodeName(i))
		}
	}
	if down > w.o.Cap {
		return fmt.Sprintf("I1: %d nodes are disrupted, the cap is %d", down, w.o.Cap)
	}
	if w.o.Without != Nothing {
		return "" // these worlds are about what follows for the caps
	}
	return w.unbidden(s)
}

// used counts slots by itself: it is the protocol's own count that is on trial.
func used(l protocol.Ledger, key string) (n int) {
	for _, s := range l.Slots {
		if key == "" || slices.Contains(s.Keys, key) {
			n++
		}
	}
	return n
}

func ofKey(key string) string {
	if key == "" {
		return ""
	}
	return " count for " + key
}

// unbidden names a node that is being changed, by its own disk, without having committed; or an attempt that two nodes have committed.
func (w *walk) unbidden(s state) string {
	for i, n := range s.nodes {
		if p := w.reports.all[n.disk].Phase; changes(p) && !n.down {
			return fmt.Sprintf("I4: %s is %s, and has not committed", nodeName(i), p)
		}
		for j, other := range s.nodes[:i] {
			if n.last > 0 && n.last == other.last {
				return fmt.Sprintf("I3: %s and %s have both committed attempt %d", nodeName(j), nodeName(i), n.last)
			}
		}
	}
	return ""
}

// changes reports whether a node in this phase is being changed, or was and is not well.
func changes(p protocol.Phase) bool {
	return p == protocol.PhaseApplying || p == protocol.PhaseVerifying || p == protocol.PhaseFailedBroken
}

// regress names the rule that a move has broken though the next state itself is sound. Worlds without a rule are about what follows from that.
func (w *walk) regress(s state) string {
	if w.o.Without != Nothing {
		return ""
	}
	if s.ledger != w.from.ledger {
		if why := w.regressLedger(s); why != "" {
			return why
		}
	}
	for i := range s.nodes {
		was, is := w.from.nodes[i], s.nodes[i]
		if is.shadow == was.shadow || is.shadow == missing {
			continue
		}
		if was.shadow == missing {
			if why := w.regressNew(i, is); why != "" {
				return why
			}
			continue
		}
		if why := w.regressShadow(i, w.shadows.all[was.shadow], w.shadows.all[is.shadow]); why != "" {
			return why
		}
	}
	return ""
}

// regressLedger is about numbers that go back, an admission by a closed ledger, and a slot that is taken without a fact.
func (w *walk) regressLedger(s state) string {
	was, is := w.ledgers.all[w.from.ledger], w.ledgers.all[s.ledger]
	switch {
	case is.Epoch < was.Epoch:
		return fmt.Sprintf("I3: the epoch goes from %d to %d", was.Epoch, is.Epoch)
	case is.Epoch > was.Epoch && was.ClosedFor(rolloutUID) != nil:
		return fmt.Sprintf("I5: attempt %d is admitted by a closed ledger", is.Epoch)
	}
	for i, n := range s.nodes {
		slot, now := was.Slot(nodeName(i)), is.Slot(nodeName(i))
		switch {
		case slot == nil:
		case now != nil && now.Attempt < slot.Attempt:
			return fmt.Sprintf("I3: the slot of %s goes from attempt %d to %d", nodeName(i), slot.Attempt, now.Attempt)
		case now == nil && n.shadow != missing:
			if sh := w.shadows.all[n.shadow]; sh.Orders.Revoked < slot.Attempt && sh.Report.Attempt < slot.Attempt {
				return fmt.Sprintf("I11: the slot of %s is taken, and attempt %d may still be committed: %+v", nodeName(i), slot.Attempt, sh)
			}
		}
	}
	return ""
}

// regressShadow is about numbers that go back, and a node that is changed without the word to proceed. Worlds without phases do not give it.
func (w *walk) regressShadow(i int, was, is protocol.Shadow) string {
	o, n := was.Orders, is.Orders
	if n.Grant < o.Grant || n.Revoked < o.Revoked || n.Proceed < o.Proceed || n.Undo < o.Undo || is.Report.Attempt < was.Report.Attempt {
		return fmt.Sprintf("I3: a number of %s goes back: %+v, and then %+v", nodeName(i), was, is)
	}
	k, p := was.Report.Attempt, is.Report.Phase
	begun := k == is.Report.Attempt && was.Report.Phase == protocol.PhaseCommitted &&
		(p == protocol.PhaseApplying || p == protocol.PhaseVerifying || p == protocol.PhaseFailedClean)
	if w.o.Phases && begun && (o.Proceed < k || o.Undo >= k) {
		return fmt.Sprintf("I4: %s is %s in attempt %d, and was told to proceed up to %d and to give up up to %d", nodeName(i), p, k, o.Proceed, o.Undo)
	}
	return ""
}

// regressNew is about a new shadow on which an attempt that was granted before could be committed.
func (w *walk) regressNew(i int, is nodeState) string {
	mark := w.shadows.all[is.shadow].Orders.Revoked
	for _, v := range is.shown {
		if p := w.proofs.all[v]; p.op == opGranted && p.k > mark {
			return fmt.Sprintf("I3: %s was granted attempt %d, and its new shadow revokes what is up to %d", nodeName(i), p.k, mark)
		}
	}
	return ""
}

// kept names a rule that no single move shows: a step function that has changed the ledger it was given.
func (w *walk) kept() string {
	for i, l := range w.ledgers.all {
		text := textOf(l)
		if n, ok := w.ledgers.index[text]; !ok || int(n) != i {
			return fmt.Sprintf("I10: a step has changed the ledger that it was given, to %s", text)
		}
	}
	return ""
}
