// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/belayproject/belay/rollout/internal/model"
	"github.com/belayproject/belay/rollout/protocol"
)

// From every world there is a way to one in which the node is idle and has no slot, by the steps of controllers
// and agents alone: without a person, a lost shadow, or the end of the Node. The one exception is a node that a
// person has given up between its commit and the word to go on.
func TestNoDeadEnds(t *testing.T) {
	before, all := map[string][]string{}, map[string]model.World{}
	key := func(w model.World) string { return fmt.Sprintf("%+v", w) }
	worlds(t, func(from model.World, event protocol.Event, to model.World, err error) {
		all[key(from)] = from
		accidents := []protocol.Event{model.EventRecreate, protocol.EventGone, model.EventAcknowledge, model.EventQuarantine}
		helps := !slices.Contains(accidents, event)
		if err == nil && helps {
			all[key(to)] = to
			before[key(to)] = append(before[key(to)], key(from))
		}
	})
	rests := map[string]bool{}
	var queue []string
	for k, w := range all {
		if len(w.Ledger.Slots) == 0 && w.Shadow.Report.Phase.AtRest() && w.Shadow.Report.Known || w.Gone {
			rests[k] = true
			queue = append(queue, k)
		}
	}
	spread(rests, queue, before)
	most := most(t)
	for k, w := range all {
		r, o := w.Shadow.Report, w.Shadow.Orders
		undecided := r.Phase == protocol.PhaseCommitted && o.Proceed < r.Attempt && o.Undo < r.Attempt
		givenUp := len(w.Ledger.Slots) == 0 && undecided
		if !rests[k] && !givenUp && w.Ledger.Epoch <= most {
			t.Fatalf("no way leads from %s to rest: %s", w.NodeState(), k)
		}
	}
	t.Logf("%d worlds", len(all))
}

// spread adds to a set everything from which there is a way to what is in the queue.
func spread(set map[string]bool, queue []string, before map[string][]string) {
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		for _, b := range before[k] {
			if !set[b] {
				set[b] = true
				queue = append(queue, b)
			}
		}
	}
}
