// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout/internal/model"
	"github.com/belayproject/belay/rollout/protocol"
)

// events are all that the table speaks of.
func events() []protocol.Event {
	var out []protocol.Event
	for _, t := range model.AllTransitions() {
		if !slices.Contains(out, t.Event) {
			out = append(out, t.Event)
		}
	}
	return out
}

// most bounds the worlds that are walked: attempts in the ledger.
func most(t *testing.T) protocol.Attempt {
	t.Helper()
	if raceshare.Step(t) > 1 {
		return 1
	}
	return 3
}

// worlds are all that can be reached from a node that is idle, each once, with what each event makes of it.
func worlds(t *testing.T, see func(from model.World, event protocol.Event, to model.World, err error)) int {
	t.Helper()
	first := model.World{Shadow: protocol.NewShadow("n", "uid", protocol.Ledger{})}
	seen, queue := map[string]bool{}, []model.World{first}
	caps, most := []protocol.Cap{{Max: 1}}, most(t)
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		for _, event := range events() {
			revision := "v1"
			if event == protocol.EventStage && w.Shadow.Orders.Stage == "v1" {
				revision = ""
			}
			next, err := model.ApplyEvent(w, event, caps, revision)
			see(w, event, next, err)
			if key := fmt.Sprintf("%+v", next); err == nil && next.Ledger.Epoch <= most && !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	return len(seen)
}

// R-RO-14: every pair of a state and an event is either in the table, and does what the table says, or is refused.
func TestTableIsTheProtocol(t *testing.T) {
	type pair struct {
		from  protocol.State
		event protocol.Event
	}
	allowed, happened := map[pair][]protocol.State{}, map[pair]map[protocol.State]bool{}
	for _, tr := range model.AllTransitions() {
		p := pair{tr.From, tr.Event}
		if allowed[p] != nil {
			t.Errorf("%s in %s is listed twice", tr.Event, tr.From)
		}
		allowed[p], happened[p] = tr.To, map[protocol.State]bool{}
	}
	wrong := map[string]bool{}
	n := worlds(t, func(from model.World, event protocol.Event, to model.World, err error) {
		p := pair{from.NodeState(), event}
		if err != nil {
			if !errors.Is(err, protocol.ErrRefused) {
				t.Fatalf("%s in %s: got error %v, want a refusal", event, p.from, err)
			}
			return
		}
		after := to.NodeState()
		if !slices.Contains(allowed[p], after) {
			wrong[fmt.Sprintf("%s in %s leads to %s, the table says %q", event, p.from, after, allowed[p])] = true
			return
		}
		happened[p][after] = true
	})
	for w := range wrong {
		t.Error(w)
	}
	for p, to := range allowed {
		for _, s := range to {
			if !happened[p][s] && raceshare.Step(t) == 1 {
				t.Errorf("%s in %s never leads to %s, though the table lists it", p.event, p.from, s)
			}
		}
	}
	t.Logf("%d worlds, %d lines", n, len(model.AllTransitions()))
}

// Numbers only grow, whatever happens, as long as the shadow is the same one: I3.
func TestNumbersOnlyGrow(t *testing.T) {
	worlds(t, func(from model.World, event protocol.Event, to model.World, err error) {
		a, b := from.Shadow, to.Shadow
		if event == model.EventRecreate || err != nil {
			return
		}
		if b.Orders.Grant < a.Orders.Grant || b.Orders.Revoked < a.Orders.Revoked || b.Orders.Proceed < a.Orders.Proceed ||
			b.Orders.Undo < a.Orders.Undo || b.Report.Attempt < a.Report.Attempt || to.Ledger.Epoch < from.Ledger.Epoch {
			t.Errorf("%s: a number got smaller: %+v to %+v", event, from, to)
		}
	})
}
