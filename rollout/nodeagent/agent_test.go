// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

var errBoom = errors.New("boom")

// bubble runs a test with virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// R-RO-34: the agent says what its node runs, also when somebody else has changed that, and writes nothing as long as nothing changes.
func TestRevisionInUseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.want("current", w.status().Current, v1)
		w.node.current, w.node.previous = v2, v1
		w.passes(time.Minute)
		w.want("current", w.status().Current, v2)
		w.want("previous", w.status().Previous, v1)
		w.want("revertible", w.status().Revertible, true)
		ops := w.ops
		w.passes(time.Minute)
		w.want("writes of an idle agent", w.ops-ops, 0)
	})
}

// The whole course: what is reported, in order. What the change takes from the node is known with the commit, before the node is drained: R-RO-22,
// the node's side.
func TestReportsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := committed(t, v2, false)
		w.want("disruption", w.status().Disruption, nodeagent.DisruptionReboot)
		w.proceed()
		w.passes(time.Hour)
		var phases []protocol.Phase
		for _, s := range w.shadows.History() {
			phases = append(phases, s.Report.Phase)
		}
		w.want("reports", phases, []protocol.Phase{"", "Committed", "Applying", "Verifying", "Done"})
		w.wantCalls("apply uid-1-1 v2")
		w.want("from", w.status().From, v1)
	})
}

// An order to undo that came before the node was touched is followed, and the same attempt is not taken again.
func TestUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := committed(t, v2, false)
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Stop(1) })
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseUndone)
		w.wantCalls()
	})
}

// A grant that is revoked, before the agent looks or while it asks whether the node can go, is not committed: R-RO-19.
func TestRevokedGrantIsNotCommitted(t *testing.T) {
	revoke := func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Revoke(1) }
	bubble(t, "before", func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.grant(v2, false)
		w.order(revoke)
		w.passes(time.Hour)
		w.want("attempt", w.status().Report.Attempt, 0)
	})
	bubble(t, "meanwhile", func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.grant(v2, false)
		w.node.pre = func() error { w.order(revoke); return nil }
		w.passes(time.Hour)
		w.want("attempt", w.status().Report.Attempt, 0)
		w.want("versions with a phase", len(w.shadows.History()), 1)
		w.wantCalls()
	})
}

// R-RO-23: a node that declines says why, and nothing is touched; one that gives no answer says that, and is asked again.
func TestPreflight(t *testing.T) {
	bubble(t, "declines", func(t *testing.T) {
		w := newWorld(t)
		w.node.pre = func() error { return &nodeagent.DeclinedError{Reason: "DiskFull", Message: "2 GiB are left, want 5"} }
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseRefused)
		w.wantReason("DiskFull")
		w.wantCalls()
		w.want("message", w.status().Message, "2 GiB are left, want 5")
	})
	bubble(t, "no answer", func(t *testing.T) {
		w := newWorld(t)
		err := errBoom
		w.node.pre = func() error { return err }
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.wantPhase("")
		w.wantReason("PreflightFailed")
		err = nil
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseCommitted)
		w.wantReason("")
	})
	bubble(t, "nobody knows what it disrupts", func(t *testing.T) {
		w := newWorld(t)
		w.node.unsure = errBoom
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.wantPhase("")
		w.wantReason("PreflightFailed")
	})
	bubble(t, "no answer, and revoked", func(t *testing.T) {
		w := newWorld(t)
		w.node.pre = func() error { return errBoom }
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Revoke(1) })
		w.passes(time.Minute)
		w.wantReason("")
	})
}

// R-RO-21: an order to go back where there is no way back is refused with a reason before anything is touched.
func TestIrreversible(t *testing.T) {
	bubble(t, "known before", func(t *testing.T) {
		w := newWorld(t)
		w.node.current, w.node.previous, w.node.no = v2, v1, true
		w.passes(time.Minute)
		w.grant(v1, true)
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseRefused)
		w.wantReason("Irreversible")
		w.wantCalls()
	})
	bubble(t, "known after", func(t *testing.T) {
		w := newWorld(t)
		w.node.current, w.node.previous = v2, v1
		w.node.onRevert = func(nodeagent.Attempt) error { return nodeagent.ErrIrreversible }
		w.passes(time.Minute)
		w.grant(v1, true)
		w.passes(time.Minute)
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("Irreversible")
	})
	// A broken node can't refuse, which would say that it is well. It says why it does not commit, and stays broken.
	bubble(t, "broken", func(t *testing.T) {
		w := broken(t)
		w.node.no = true
		w.passes(time.Minute)
		w.grant(v1, true)
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseFailedBroken)
		w.wantReason("Irreversible")
		w.want("attempt", w.status().Report.Attempt, 1)
		w.wantCalls("apply uid-1-1 v2")
	})
}

// broken is a world in which an attempt has left the node sick.
func broken(t *testing.T) *world {
	t.Helper()
	w := committed(t, v2, false)
	w.node.health = sick
	w.proceed()
	w.passes(time.Hour)
	w.wantPhase(protocol.PhaseFailedBroken)
	w.wantReason("Sick")
	return w
}

// Fetching ahead disrupts nothing; a failure is reported and tried again.
func TestStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.node.fetch = func() error { return errBoom }
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Prefetch(v2.String()) })
		w.passes(time.Minute)
		w.wantReason("PrepareFailed")
		w.want("staged", w.status().Report.Staged, "")
		w.node.fetch = nil
		w.passes(time.Minute)
		w.wantReason("")
		w.want("staged", w.status().Report.Staged, v2.String())
		n := len(w.node.calls)
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Prefetch("") })
		w.passes(time.Minute)
		w.want("staged", w.status().Report.Staged, "")
		w.node.staged = v1 // it is there already: nothing to fetch
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Prefetch(v1.String()) })
		w.passes(time.Minute)
		w.want("staged", w.status().Report.Staged, v1.String())
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Prefetch("") })
		w.passes(time.Minute)
		w.want("staged", w.status().Report.Staged, "")
		w.want("calls", len(w.node.calls), n)
	})
}

// New names what is missing.
func TestOptions(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		want string
		set  func(o *nodeagent.Options)
	}{
		{"Options.Shadows", func(o *nodeagent.Options) { o.Shadows = nil }},
		{"Options.Disk", func(o *nodeagent.Options) { o.Disk = nil }},
		{"Options.Updater", func(o *nodeagent.Options) { o.Updater = nil }},
		{"Options.NodeUID", func(o *nodeagent.Options) { o.NodeUID = nil }},
		{"Options.VerifyEvery is -1s", func(o *nodeagent.Options) { o.VerifyEvery = -time.Second }},
		{"Options.VerifyWithin is 1m0s", func(o *nodeagent.Options) { o.VerifyFor, o.VerifyWithin = time.Minute, time.Minute }},
		{"Options.RetryMax", func(o *nodeagent.Options) { o.RetryMin = time.Hour }},
	} {
		o := w.o
		c.set(&o)
		if _, err := nodeagent.New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one that names %s", err, c.want)
		}
	}
}

// Run ends with its context and returns nil, whatever is under way.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		changed := make(chan struct{}, 1)
		w.o.Changed, w.o.Resync = changed, time.Hour
		w.start()
		ctx, cancel := context.WithCancel(quiet(t))
		done := make(chan error)
		go func() { done <- w.agent.Run(ctx) }()
		synctest.Wait()
		w.grant(v2, false)
		changed <- struct{}{}
		synctest.Wait()
		w.wantPhase(protocol.PhaseCommitted) // at once, not at the next resync
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want nil", err)
		}
	})
}

// That the agent is told to end while it applies is no return of Apply: the same agent, as the next one, calls it again with the same key.
func TestEndIsNoReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := committed(t, v2, false)
		w.proceed()
		ctx, cancel := context.WithCancel(quiet(t))
		w.node.onApply = func(nodeagent.Attempt) error { cancel(); return errBoom }
		if _, err := w.agent.Reconcile(ctx, "n"); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
		w.node.onApply = nil
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-1-1 v2", "apply uid-1-1 v2")
	})
}

// A pass over another node than that of the shadow is refused, and has no effect.
func TestReconcileOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := committed(t, v2, false)
		w.proceed()
		for _, node := range []string{"", "m"} {
			_, err := w.agent.Reconcile(quiet(t), node)
			var wrong *option.Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "node") {
				t.Errorf("node %q: got error %v, want an OptionError that names node", node, err)
			}
		}
		w.wantCalls()
		w.passes(time.Hour)
		w.wantCalls("apply uid-1-1 v2")
	})
}

// One pass runs at a time; who waits for it ends with its own context.
func TestOnePassAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := committed(t, v2, false)
		w.proceed()
		release := make(chan struct{})
		w.node.onApply = func(a nodeagent.Attempt) error { <-release; w.node.effect("apply", a); return nil }
		first := make(chan error, 1)
		go func() { _, err := w.agent.Reconcile(quiet(t), "n"); first <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(quiet(t), time.Second)
		defer cancel()
		if _, err := w.agent.Reconcile(ctx, "n"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second pass: got error %v, want context.DeadlineExceeded", err)
		}
		close(release)
		if err := <-first; err != nil {
			t.Errorf("first pass: got error %v, want none", err)
		}
		w.wantCalls("apply uid-1-1 v2")
	})
}
