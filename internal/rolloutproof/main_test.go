// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout/protocol"
)

func TestMain(m *testing.M) {
	if code, child := rolloutstage.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// nodesEnv is for how many nodes there are: the proofs in full have 50, and 100 for the life of a fleet.
const nodesEnv = "BELAY_ROLLOUT_NODES"

// patience bounds each wait for something to happen, stamina each wait for a whole rollout.
const (
	patience = 2 * time.Minute
	stamina  = 15 * time.Minute
)

// seedEnv replays what is drawn in a test. What the processes make of it is up to their machine.
const seedEnv = "BELAY_ROLLOUT_SEED"

// draws are those of a test.
func draws(t *testing.T) *rand.Rand {
	t.Helper()
	return rolloutstage.Draws(t, seedEnv, 2)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fleet is that of a test.
type fleet struct {
	*rolloutstage.Fleet
	t      *testing.T
	before protocol.Attempt // those of earlier rollouts
}

// newFleet makes a fleet with few nodes, unless the environment asks for more.
func newFleet(t *testing.T, o rolloutstage.Options) *fleet {
	t.Helper()
	if text := os.Getenv(nodesEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q: want the number of nodes, 1 or more", nodesEnv, text)
		}
		o.Nodes = n
	}
	f, err := rolloutstage.New(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fleet{Fleet: f, t: t}
}

// spawn starts a controller, which ends with the test.
func (f *fleet) spawn(task rolloutstage.Task) *rolloutstage.Process {
	f.t.Helper()
	p, err := f.Spawn(task)
	must(f.t, err)
	f.t.Cleanup(p.Kill)
	return p
}

// completed waits for the end of a rollout.
func (f *fleet) completed(p *rolloutstage.Process, revision string) {
	f.t.Helper()
	rolloutstage.Eventually(f.t, "the rollout of "+revision+" ends", stamina, func(ctx context.Context) error {
		must(f.t, p.Alive())
		return f.Completed(ctx, revision)
	})
}

// An endState is what can be said of a fleet when a rollout is over.
type endState struct {
	Attempts protocol.Attempt
	Runs     map[string]int // nodes, by whether they run the revision and how often they have applied it
	Cordons  map[int]int    // nodes, by how often they were cordoned
}

// state is where the fleet stands. It checks what must never be.
func (f *fleet) state(revision string) endState {
	f.t.Helper()
	shown := f.sound()
	l, err := f.Ledger(f.t.Context())
	must(f.t, err)
	s := endState{Attempts: l.Epoch - f.before, Runs: map[string]int{}, Cordons: map[int]int{}}
	f.before = l.Epoch
	for name, m := range f.Crew.Machines() {
		current, applied := m.History()
		times := 0
		for _, a := range applied {
			if a == revision {
				times++
			}
		}
		key := "run something else"
		if current == revision {
			key = map[bool]string{true: "run it, applied once", false: "run it, applied again"}[times == 1]
		}
		s.Runs[key]++
		s.Cordons[shown.Cordons[name]]++
	}
	return s
}

// once is the end of a rollout in which each node had one attempt.
func (f *fleet) once() endState {
	return endState{protocol.Attempt(f.Nodes), map[string]int{"run it, applied once": f.Nodes}, map[int]int{1: f.Nodes}}
}

// sound checks what no version of the ledger or of a Node may show.
func (f *fleet) sound() rolloutstage.Shown {
	f.t.Helper()
	shown := f.Truth.Report()
	for _, w := range shown.Wrong {
		f.t.Errorf("R-RO-01: %s", w)
	}
	f.t.Logf("at most %d slots in %d versions of the ledger", shown.Slots, shown.Versions)
	return shown
}
