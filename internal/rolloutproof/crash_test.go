// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/tier"
)

// R-RO-01: the controller is killed before and after each of its writes: those of the ledger, the Rollout, shadows, Nodes and evictions. The
// rollout ends as one that nobody disturbs: as many attempts, one for each node, each of which was cordoned once and changed once, and was given
// back. Then it is done once more with controllers that have been at work for a while: each is killed around a later write, which is drawn.
func TestKilledAroundEveryWriteItGoesOn(t *testing.T) {
	t.Parallel()
	o := rolloutstage.Options{Nodes: 2, Cap: 1, PodsPerNode: 2, Verify: time.Millisecond}
	if tier.RunsWhole(t) {
		o.Nodes, o.Cap = 3, 2
	}
	f := newFleet(t, o)
	must(t, f.Begin(t.Context(), "v2", nil))
	p := f.spawn(rolloutstage.Task{})
	f.completed(p, "v2")
	p.Kill()
	quiet := f.state("v2")
	must(t, f.Turn(t.Context(), "v3"))
	writes := f.killed("v3", func(lives int) rolloutstage.Task { return rolloutstage.Task{Stop: 1, Sent: lives%2 == 1} })
	f.reaches(quiet, "v3", len(writes))
	r := draws(t)
	must(t, f.Turn(t.Context(), "v4"))
	later := f.killed("v4", func(int) rolloutstage.Task {
		return rolloutstage.Task{Stop: 2 + r.IntN(laterWrites*f.Nodes), Sent: r.IntN(2) == 0}
	})
	f.reaches(quiet, "v4", len(later))
	kinds := map[string]int{}
	for _, w := range writes {
		kinds[rolloutstage.KindOf(w)]++
	}
	if len(writes) < 12*f.Nodes || len(kinds) < 5 {
		t.Errorf("the controller was killed %d times in a rollout of %d nodes, want it around each of its writes: %v", len(writes), f.Nodes, kinds)
	}
	if len(later) == 0 {
		t.Error("no controller was killed at a later write")
	}
	t.Logf("%d nodes; the controller was killed %d times: %v; and %d times at a later write", f.Nodes, len(writes), kinds, len(later))
}

// laterWrites is around how many writes for each node, after its first one, a controller may be killed: some passes of
// it. A rollout has at least 12 for each node, so that the first controller does not end before it is killed.
const laterWrites = 10

// reaches fails the test if the fleet is not where a rollout that nobody disturbed has brought it.
func (f *fleet) reaches(quiet endState, revision string, kills int) {
	f.t.Helper()
	if diff := cmp.Diff(quiet, f.state(revision)); diff != "" {
		f.t.Errorf("R-RO-01: a controller that was killed %d times has brought the fleet elsewhere than one that was not (-undisturbed +killed):\n%s", kills, diff)
	}
}

// killed has one controller after the other end at a write that task names, of one that follows so many. It returns the writes.
func (f *fleet) killed(revision string, task func(lives int) rolloutstage.Task) (writes []string) {
	f.t.Helper()
	began := time.Now()
	for {
		p := f.spawn(task(len(writes)))
		what := f.life(p, revision)
		p.Kill()
		if what == "" {
			return writes
		}
		writes = append(writes, what)
		if len(writes)%100 == 0 {
			f.t.Logf("killed %d times in %s, last at %q", len(writes), time.Since(began).Round(time.Second), writes[len(writes)-6:])
		}
		if len(writes) > 60*f.Nodes+200 {
			f.t.Fatalf("R-RO-01: the controller was killed %d times, and the rollout is not over: %v", len(writes), f.Completed(f.t.Context(), revision))
		}
	}
}

// life waits until a controller has stopped at a write, which it returns, or the rollout is over.
func (f *fleet) life(p *rolloutstage.Process, revision string) (what string) {
	f.t.Helper()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	deadline := time.After(patience)
	for {
		select {
		case e, ok := <-p.Events:
			must(f.t, p.Fault(e, ok))
			if e.Kind == rolloutstage.Stopped {
				return e.What
			}
		case <-look.C:
			if f.Completed(f.t.Context(), revision) == nil {
				return ""
			}
		case <-deadline:
			f.t.Fatalf("R-RO-01: a controller has nothing to write for %s, and the rollout is not over: %v", patience, f.Completed(f.t.Context(), revision))
		}
	}
}
