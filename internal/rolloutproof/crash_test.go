// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-01, R-RO-20: the controller is killed before and after each of its writes: those of the ledger, the Rollout, shadows, Nodes and evictions. The
// rollout ends as one that nobody disturbs: as many attempts, one for each node, each of which was cordoned once and changed once, and was given
// back. BELAY_ROLLOUT_NODES=50 is the proof in full.
func TestKilledAroundEveryWriteItGoesOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleetSize(t, 5), 3, time.Millisecond)
	quiet := f.undisturbed("v2")
	lives := f.killed("v3")
	killed := f.state("v3")
	if diff := cmp.Diff(quiet, killed); diff != "" {
		t.Errorf("R-RO-20: a controller that was killed %d times has brought the fleet elsewhere than one that was not (-undisturbed +killed):\n%s", len(lives), diff)
	}
	if len(lives) < 12*f.size {
		t.Errorf("the controller was killed %d times in a rollout of %d nodes, want it around each of its writes", len(lives), f.size)
	}
	t.Logf("%d nodes; the controller was killed %d times: %v", f.size, len(lives), tally(lives))
}

// An endState is what can be said of a fleet when a rollout is over.
type endState struct {
	Attempts protocol.Attempt
	Runs     map[string]int // nodes, by whether they run the revision and how often they have applied it
	Cordons  map[int]int    // nodes, by how often they were cordoned
}

// undisturbed lets one controller do it.
func (f *fleet) undisturbed(revision string) endState {
	f.t.Helper()
	f.begin(revision)
	p := spawn(f.t, f.env, childTask{Domain: domain})
	defer p.kill()
	eventually(f.t, "an undisturbed rollout ends", func(ctx context.Context) error {
		p.next()
		return f.over(ctx, revision)
	})
	return f.state(revision)
}

// killed has one controller after the other end at its first write, by turns before and after it. It returns the writes.
func (f *fleet) killed(revision string) (lives []string) {
	f.t.Helper()
	f.begin(revision)
	for last := time.Now(); ; {
		p := spawn(f.t, f.env, childTask{Domain: domain, Stop: 1, Sent: len(lives)%2 == 1})
		what := f.life(p, revision)
		p.kill()
		if what == "" {
			return lives
		}
		lives = append(lives, what)
		if len(lives)%100 == 0 {
			f.t.Logf("killed %d times, in %s, the last ones %q", len(lives), time.Since(last).Round(time.Second), lives[len(lives)-8:])
			last = time.Now()
		}
	}
}

// life waits until a controller has stopped at a write, which it returns, or the rollout is over.
func (f *fleet) life(p *process, revision string) (what string) {
	f.t.Helper()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	deadline := time.After(patience)
	for {
		select {
		case e, ok := <-p.events:
			if !ok || e.Kind == childFailed {
				f.t.Fatalf("the controller has ended by itself: %+v; it printed %s", e, p.output)
			}
			if e.Kind == childStopped {
				return e.What
			}
		case <-look.C:
			if f.over(f.t.Context(), revision) == nil {
				return ""
			}
		case <-deadline:
			f.t.Fatalf("R-RO-20: a controller has nothing to write for %s, and the rollout is not over: %v", patience, f.over(f.t.Context(), revision))
		}
	}
}

// state is where the fleet stands, and checks what must never be.
func (f *fleet) state(revision string) endState {
	f.t.Helper()
	wrong, cordons, slots, versions := f.truth.report()
	for _, w := range wrong {
		f.t.Errorf("R-RO-01: %s", w)
	}
	l, err := f.ledger(f.t.Context())
	must(f.t, err)
	s := endState{Attempts: l.Epoch - protocol.Attempt(f.before), Runs: map[string]int{}, Cordons: map[int]int{}}
	f.before = int64(l.Epoch)
	for name, m := range f.crew.all() {
		current, applied := m.history()
		key := "another revision"
		if current == revision && len(applied) > 0 && applied[len(applied)-1] == revision {
			times := len(slices.DeleteFunc(applied, func(r string) bool { return r != revision }))
			key = map[bool]string{true: "applied once", false: "applied again"}[times == 1]
		}
		s.Runs[key]++
		s.Cordons[cordons[name]]++
	}
	f.t.Logf("%s: %d attempts, at most %d slots in %d versions of the ledger", revision, s.Attempts, slots, versions)
	return s
}

// tally counts the kinds of writes.
func tally(writes []string) map[string]int {
	n := map[string]int{}
	for _, w := range writes {
		n[kindOf(w)]++
	}
	return maps.Clone(n)
}
