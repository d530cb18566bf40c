// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/internal/rolloutstage"
)

// leaseFor is how long a leader is believed in.
const leaseFor = 2 * time.Second

// mostTries bounds how often leaders are spawned, until one of them leads for as long as it takes to freeze it.
const mostTries = 5

// R-RO-05: a leader is frozen (SIGSTOP) before a write, for ten times as long as its Lease lasts. Another one leads and goes on. Then the first one is
// thawed: its write goes out, and it finds out that it leads no more. No cap is broken at any version of the ledger, nor by cordons, and no node is
// disrupted twice. BELAY_ROLLOUT_NODES does it for each kind of write.
func TestFrozenLeaderBreaksNoCap(t *testing.T) {
	t.Parallel()
	kinds := []string{"/disruptionledgers/"}
	if os.Getenv(nodesEnv) != "" {
		kinds = append(kinds, "/rollouts/", "/nodeshadows/", "/nodes/", "/eviction")
	}
	f := newFleet(t, rolloutstage.Options{Nodes: 24, Cap: 2, PodsPerNode: 2, Verify: 3 * time.Second}) // long enough, also after leaders that were of no use
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
	first, second, write := f.freezes(revision, at)
	defer first.Kill()
	thaw := time.Now().Add(10 * leaseFor)
	second = f.led(second, revision, "the first leader is frozen for long enough", func(context.Context) error {
		if left := time.Until(thaw); left > 0 {
			return fmt.Errorf("it stays frozen for another %s", left)
		}
		return nil
	})
	if f.Completed(f.t.Context(), revision) == nil {
		f.t.Fatalf("the rollout of %s is over before the first leader is thawed: nothing is proven", revision)
	}
	must(f.t, first.Thaw())
	_, err := first.Await(f.t.Context(), rolloutstage.Retired, patience)
	must(f.t, err)
	second = f.led(second, revision, "the rollout of "+revision+" ends", func(ctx context.Context) error { return f.Completed(ctx, revision) })
	second.Kill()
	if diff := cmp.Diff(f.once(), f.state(revision)); diff != "" {
		f.t.Errorf("R-RO-05: with a leader that was frozen before %s the fleet has ended elsewhere (-want +got):\n%s", write, diff)
	}
	f.t.Logf("frozen before %s", write)
}

// freezes returns a leader that has frozen itself before a write, and another one that leads after it. Where either loses its Lease before that, for which
// one stall of a busy machine is enough, others take their places: it has to be a leader that is frozen.
func (f *fleet) freezes(revision, at string) (first, second *rolloutstage.Process, write string) {
	f.t.Helper()
	for range mostTries {
		first = f.leader(rolloutstage.Task{Holder: "first-" + revision, At: at, Freeze: 6})
		if _, ok := f.says(first, rolloutstage.Leads); ok {
			second = f.leader(rolloutstage.Task{Holder: "second-" + revision})
			if write, ok = f.says(first, rolloutstage.Freezes); ok {
				if _, ok = f.says(second, rolloutstage.Leads); ok {
					return first, second, write
				}
			}
			second.Kill()
		}
		first.Kill()
	}
	f.t.Fatalf("%d leaders have lost their Leases, and none was frozen while it led", mostTries)
	return nil, nil, ""
}

// leader starts a controller that works only as long as it leads. No two have the same name, as one that is spawned for another one has to wait for its
// Lease.
func (f *fleet) leader(task rolloutstage.Task) *rolloutstage.Process {
	f.t.Helper()
	task.Holder, task.Lease, task.LeaseFor = fmt.Sprintf("%s-%d", task.Holder, time.Now().UnixNano()), "leader", leaseFor
	return f.spawn(task)
}

// says waits until a leader says something. It returns false if it says before that that it has lost its Lease.
func (f *fleet) says(p *rolloutstage.Process, kind rolloutstage.Kind) (what string, ok bool) {
	f.t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case e, open := <-p.Events:
			must(f.t, p.Fault(e, open))
			if e.Kind == kind || e.Kind == rolloutstage.Retired {
				return e.What, e.Kind == kind
			}
		case <-deadline:
			f.t.Fatalf("a controller has not said %q for %s", kind, patience)
		}
	}
}

// led waits for something while a leader works. One that loses its Lease meanwhile is followed by another one. It returns the one that works in the end.
func (f *fleet) led(p *rolloutstage.Process, revision, rule string, done func(context.Context) error) *rolloutstage.Process {
	f.t.Helper()
	rolloutstage.Eventually(f.t, rule, stamina, func(ctx context.Context) error {
		for {
			select {
			case e, open := <-p.Events:
				must(f.t, p.Fault(e, open))
				if e.Kind == rolloutstage.Retired {
					p.Kill()
					p = f.leader(rolloutstage.Task{Holder: "second-" + revision})
				}
			default:
				return done(ctx)
			}
		}
	})
	return p
}
