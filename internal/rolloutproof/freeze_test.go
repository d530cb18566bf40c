// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"
)

// leaseFor is how long a leader is believed in.
const leaseFor = 2 * time.Second

// R-RO-02: a leader is frozen (SIGSTOP) before a write, for ten times as long as its Lease lasts. Another one leads and goes on. Then the first one is
// thawed: its write goes out, and it finds out that it leads no more. No cap is broken at any version of the ledger, nor by cordons, and no node is
// disrupted twice. BELAY_ROLLOUT_NODES=50 does it for each kind of write.
func TestFrozenLeaderBreaksNoCap(t *testing.T) {
	t.Parallel()
	kinds := []string{"/disruptionledgers/"}
	if os.Getenv(nodesEnv) != "" {
		kinds = append(kinds, "/rollouts/", "/nodeshadows/", "/nodes/", "/eviction")
	}
	size := fleetSize(t, 24)
	f := newFleet(t, size, 2, 2*time.Second)
	for i, at := range kinds {
		f.frozen(fmt.Sprintf("v%d", i+2), at)
	}
}

// frozen brings the fleet to a revision by two leaders, of which the first is frozen.
func (f *fleet) frozen(revision, at string) {
	f.t.Helper()
	f.begin(revision)
	first := spawn(f.t, f.env, childTask{Domain: domain, Holder: "first-" + revision, Lease: "leader", LeaseFor: leaseFor, At: at, Freeze: 6})
	defer first.kill()
	f.await(first, childLeads)
	second := spawn(f.t, f.env, childTask{Domain: domain, Holder: "second-" + revision, Lease: "leader", LeaseFor: leaseFor})
	defer second.kill()
	write := f.await(first, childFreezes)
	frozen := time.Now()
	f.await(second, childLeads)
	<-time.After(time.Until(frozen.Add(10 * leaseFor)))
	if f.over(f.t.Context(), revision) == nil {
		f.t.Fatalf("the rollout of %s is over before the first leader is thawed: nothing is proven", revision)
	}
	first.thaw()
	eventually(f.t, "the second leader ends the rollout", func(ctx context.Context) error {
		second.next()
		return f.over(ctx, revision)
	})
	s := f.state(revision)
	if int(s.Attempts) != f.size || s.Runs["applied once"] != f.size || s.Cordons[1] != f.size {
		f.t.Errorf("R-RO-02: frozen before %s, the fleet of %d has ended with %+v, want one attempt, change and cordon for each node", write, f.size, s)
	}
	f.t.Logf("frozen before %s", write)
}

// await waits for an event of a child.
func (f *fleet) await(p *process, kind string) (what string) {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e, ok := <-p.events:
			if !ok || e.Kind == childFailed {
				f.t.Fatalf("a controller has ended by itself: %+v; it printed %s", e, p.output)
			}
			if e.Kind == kind {
				return e.What
			}
		case <-deadline:
			f.t.Fatalf("a controller says nothing of %q for %s", kind, patience)
		}
	}
}

// kindOf is what a write is, without names.
func kindOf(write string) string {
	return regexp.MustCompile(`(/(nodes|nodeshadows|rollouts|disruptionledgers|pods|namespaces)/)[^/]+`).ReplaceAllString(write, "$1*")
}
