// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/evictionapi"
)

// walk plays random events, and applies every decision at once or a part of it, as a process that is killed does.
func walk(w *world, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	w.request("acme.io/r1", evictionapi.IntentEviction)
	for range 60 {
		w.now = w.now.Add(time.Duration(random.IntN(15)) * time.Minute)
		switch random.IntN(8) {
		case 0:
			w.beat()
		case 1:
			w.complete()
		case 2, 3:
			r := *w.requests[random.IntN(len(w.requests))]
			r.Spec.Intent = []string{evictionapi.IntentEviction, evictionapi.IntentWithdrawn}[random.IntN(2)]
			r.Generation++
			w.requests[slices.IndexFunc(w.requests, func(o *evictionapi.EvictionRequest) bool { return o.UID == r.UID })] = &r
		case 4:
			if len(w.requests) < 3 {
				w.request(fmt.Sprintf("acme.io/r%d", len(w.requests)+1), evictionapi.IntentEviction)
			}
		case 5:
			if random.IntN(20) == 0 {
				w.pod, w.endedFor = podGone, reportGrace
			}
		}
		d := w.decide(w.observation)
		if random.IntN(2) == 0 { // killed in the middle
			d.requests, d.labels = nil, nil
		}
		if err := w.apply(d); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		open := 0
		for _, e := range w.evictions {
			if !isFinal(e.Status.Conditions) {
				open++
			}
		}
		if open > 1 {
			return fmt.Errorf("seed %d: %d Evictions are not final", seed, open)
		}
	}
	_, err := w.settle()
	return err
}

// No sequence of events breaks an invariant, and broken controllers are caught: the checks are no ornament.
func TestRandomWalk(t *testing.T) {
	t.Parallel()
	broken := map[string]func(observation) decision{
		"two Active": func(o observation) decision {
			d := decideWrites(o)
			for _, c := range d.statuses {
				for i := range c.to.Status.TargetResponders {
					c.to.Status.TargetResponders[i].State = evictionapi.StateActive
				}
			}
			return d
		},
		"heartbeat ignored": func(o observation) decision {
			o.evictions = slices.Clone(o.evictions)
			for i, e := range o.evictions {
				to := *e
				to.Status.Responders = slices.Clone(e.Status.Responders)
				for j := range to.Status.Responders {
					to.Status.Responders[j].HeartbeatTime = nil
				}
				o.evictions[i] = &to
			}
			return decideWrites(o)
		},
		"never silent": func(o observation) decision {
			o.now = start
			return decideWrites(o)
		},
		"final reverted": func(o observation) decision {
			d := decideWrites(o)
			for _, e := range o.evictions {
				if isFinal(e.Status.Conditions) {
					to := *e
					to.Status.Conditions = nil
					d.statuses = append(d.statuses, evictionChange{e, &to})
				}
			}
			return d
		},
	}
	play := func(decide func(observation) decision) error {
		for seed := range uint64(300) {
			w := newWorld(ofPriority("acme.io/a", 10000), ofPriority("acme.io/b", 2000))
			w.decide = decide
			if err := walk(w, seed); err != nil {
				return err
			}
		}
		return nil
	}
	if err := play(decideWrites); err != nil {
		t.Error(err)
	}
	for name, decide := range broken {
		if err := play(decide); err == nil {
			t.Errorf("a controller with %q passes", name)
		}
	}
}
