// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/internal/rolloutstage"
)

// leaseFor is how long a leader is believed in.
const leaseFor = 2 * time.Second

// R-RO-05: a leader is frozen (SIGSTOP) before a write, for ten times as long as its Lease lasts. Another one leads and goes on. Then the first one is
// thawed: its write goes out, and it finds out that it leads no more. No cap is broken at any version of the ledger, nor by cordons, and no node is
// disrupted twice. BELAY_ROLLOUT_NODES does it for each kind of write.
func TestFrozenLeaderBreaksNoCap(t *testing.T) {
	t.Parallel()
	kinds := []string{"/disruptionledgers/"}
	if os.Getenv(nodesEnv) != "" {
		kinds = append(kinds, "/rollouts/", "/nodeshadows/", "/nodes/", "/eviction")
	}
	f := newFleet(t, rolloutstage.Options{Nodes: 24, Cap: 2, PodsPerNode: 2, Verify: 2 * time.Second})
	for i, at := range kinds {
		revision := fmt.Sprintf("v%d", i+2)
		if i == 0 {
			must(t, f.Begin(t.Context(), revision, nil))
		} else {
			must(t, f.Turn(t.Context(), revision))
		}
		f.frozen(revision, at)
	}
}

// frozen has two leaders bring the fleet to a revision, of which the first is frozen.
func (f *fleet) frozen(revision, at string) {
	f.t.Helper()
	first := f.spawn(rolloutstage.Task{Holder: "first-" + revision, Lease: "leader", LeaseFor: leaseFor, At: at, Freeze: 6})
	defer first.Kill()
	await := func(p *rolloutstage.Process, kind rolloutstage.Kind) string {
		what, err := p.Await(f.t.Context(), kind, patience)
		must(f.t, err)
		return what
	}
	await(first, rolloutstage.Leads)
	second := f.spawn(rolloutstage.Task{Holder: "second-" + revision, Lease: "leader", LeaseFor: leaseFor})
	defer second.Kill()
	write := await(first, rolloutstage.Freezes)
	frozen := time.Now()
	await(second, rolloutstage.Leads)
	<-time.After(time.Until(frozen.Add(10 * leaseFor)))
	if f.Completed(f.t.Context(), revision) == nil {
		f.t.Fatalf("the rollout of %s is over before the first leader is thawed: nothing is proven", revision)
	}
	must(f.t, first.Thaw())
	await(first, rolloutstage.Retired)
	f.completed(second, revision)
	if diff := cmp.Diff(f.once(), f.state(revision)); diff != "" {
		f.t.Errorf("R-RO-05: with a leader that was frozen before %s the fleet has ended elsewhere (-want +got):\n%s", write, diff)
	}
	f.t.Logf("frozen before %s", write)
}
