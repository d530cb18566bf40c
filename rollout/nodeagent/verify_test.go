// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// verifying is a world in which a revision is being verified since now, by the checks that health makes.
func verifying(t *testing.T, health func() (nodeagent.Health, error)) *world {
	t.Helper()
	w := committed(t, v2, false)
	w.node.health = health
	w.proceed()
	w.passes(time.Nanosecond)
	return w
}

func verdict(v nodeagent.Verdict) func() (nodeagent.Health, error) {
	return func() (nodeagent.Health, error) { return nodeagent.Health{Verdict: v}, nil }
}

// The healthy time is running time between checks that passed: 60 s of checks each 10 s are 7 checks.
func TestVerifiedAfterHealthyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := verifying(t, nil)
		w.passes(59 * time.Second)
		w.wantPhase(protocol.PhaseVerifying)
		w.passes(2 * time.Second)
		w.wantPhase(protocol.PhaseDone)
		w.want("checks", w.node.checks, 7)
	})
}

// A check that fails takes the healthy time away, one that has no answer, or not yet, adds nothing and takes nothing.
func TestHealthyTimeIsInterrupted(t *testing.T) {
	for _, c := range []struct {
		name   string
		health func() (nodeagent.Health, error)
		reason string
		more   time.Duration // to go after 50 s of health and one check that did not pass
	}{
		{"failed", verdict(nodeagent.Fail), "Unhealthy", 70 * time.Second},
		{"not yet", verdict(nodeagent.NotYet), "NotYet", 20 * time.Second},
		{"silent", verdict(""), "NotYet", 20 * time.Second},
		{"no answer", func() (nodeagent.Health, error) { return nodeagent.Health{Verdict: nodeagent.Pass}, errBoom }, "NoAnswer", 20 * time.Second},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w := verifying(t, nil)
			w.passes(59 * time.Second)
			w.node.health = c.health
			w.passes(2 * time.Second)
			w.wantPhase(protocol.PhaseVerifying)
			w.wantReason(c.reason)
			w.node.health = nil
			w.passes(c.more - 2*time.Second)
			w.wantPhase(protocol.PhaseVerifying)
			w.wantReason("")
			w.passes(2 * time.Second)
			w.wantPhase(protocol.PhaseDone)
		})
	}
}

// Time in which no agent ran is not healthy time, but what was gathered stays; another boot takes it away.
func TestHealthyTimeOverRestarts(t *testing.T) {
	for _, c := range []struct {
		boots int
		more  time.Duration
	}{{0, 10 * time.Second}, {1, 60 * time.Second}} {
		bubble(t, fmt.Sprint(c.boots), func(t *testing.T) {
			w := verifying(t, nil)
			w.passes(55 * time.Second) // 50 s are credited
			w.start()
			time.Sleep(time.Hour)
			synctest.Wait()
			w.node.boot += c.boots
			w.passes(c.more - time.Second)
			w.wantPhase(protocol.PhaseVerifying)
			w.passes(2 * time.Second)
			w.wantPhase(protocol.PhaseDone)
		})
	}
}

// A node that is not healthy within the bound has failed. An agent that is killed again and again comes to it too.
func TestBound(t *testing.T) {
	bubble(t, "running", func(t *testing.T) {
		w := verifying(t, sick)
		w.passes(9*time.Minute + 49*time.Second)
		w.wantPhase(protocol.PhaseVerifying)
		w.passes(2 * time.Second)
		w.wantPhase(protocol.PhaseFailedBroken)
		w.wantReason("Sick")
		w.wantCalls("apply uid-1-1 v2")
	})
	bubble(t, "restarted", func(t *testing.T) {
		w := verifying(t, sick)
		for range 60 {
			w.start()
			w.passes(time.Nanosecond)
		}
		w.wantPhase(protocol.PhaseFailedBroken)
	})
}

// At the bound the node goes back, if that is asked for, there is a way, and the attempt does not go back itself.
func TestTakenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(w *world)
		revert bool
		phase  protocol.Phase
		reason string
		calls  int
	}{
		{"back", func(*world) {}, false, protocol.PhaseFailedClean, "Sick", 2},
		{"not asked for", func(w *world) { w.o.RevertBroken = false }, false, protocol.PhaseFailedBroken, "Sick", 1},
		{"no way", func(w *world) { w.node.no = true }, false, protocol.PhaseFailedBroken, "Sick", 1},
		{"fails", func(w *world) {
			w.node.onRevert = func(nodeagent.Attempt) error { return errBoom }
		}, false, protocol.PhaseFailedBroken, "RevertFailed", 2},
		{"irreversible", func(w *world) {
			w.node.onRevert = func(nodeagent.Attempt) error { return nodeagent.ErrIrreversible }
		}, false, protocol.PhaseFailedBroken, "Irreversible", 2},
		{"back already", func(w *world) { w.node.current, w.node.previous = v2, v1 }, true, protocol.PhaseFailedBroken, "Sick", 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w := newWorld(t)
			w.o.RevertBroken, w.node.health = true, sick
			c.set(w)
			w.start()
			w.passes(time.Minute)
			to := v2
			if c.revert {
				to = v1
			}
			w.grant(to, c.revert)
			w.passes(time.Minute)
			w.proceed()
			w.passes(11 * time.Minute)
			w.wantPhase(c.phase)
			w.wantReason(c.reason)
			w.want("calls", len(w.node.calls), c.calls)
		})
	}
}

// A broken node comes back by itself or by a hand. One that runs the target has to pass a check, and is verified anew.
func TestBrokenNodeComesBack(t *testing.T) {
	bubble(t, "target", func(t *testing.T) {
		w := broken(t)
		w.node.health = nil
		w.passes(2 * time.Minute)
		w.wantPhase(protocol.PhaseDone)
	})
	bubble(t, "before", func(t *testing.T) {
		w := broken(t)
		w.node.current = v1
		w.passes(2 * time.Minute)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("Sick")
	})
	bubble(t, "neither", func(t *testing.T) {
		w := broken(t)
		w.node.current, w.node.health = protocol.Revision{Name: "v3"}, nil
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseFailedBroken)
	})
}

// The next attempt of a broken node may go back or forward. What it is left with if that fails is not what it ran before, and well.
func TestNextAttemptOfBrokenNode(t *testing.T) {
	bubble(t, "back", func(t *testing.T) {
		w := broken(t)
		w.grant(v1, true)
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseCommitted)
		w.node.health = nil
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-1-1 v2", "revert uid-1-2 v1")
	})
	bubble(t, "back in vain", func(t *testing.T) {
		w := broken(t)
		w.node.onRevert = func(nodeagent.Attempt) error { return errBoom }
		w.grant(v1, true)
		w.passes(time.Minute)
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseFailedBroken) // it still runs v2, which made it sick
	})
	bubble(t, "forward", func(t *testing.T) {
		w := broken(t)
		w.grant(protocol.Revision{Name: "v3"}, false)
		w.passes(time.Minute)
		w.want("from", w.status().From, v1)
		w.node.onApply = func(nodeagent.Attempt) error { w.node.current = v1; return errBoom }
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseFailedClean) // back where all was well
	})
}

// A hook that says that a reboot is under way is waited for: nothing is called again, and nothing is judged, before the node has booted, or the
// time of the call is over.
func TestRebooting(t *testing.T) {
	rebooting := func(nodeagent.Attempt) error { return nodeagent.ErrRebooting }
	bubble(t, "boots", func(t *testing.T) {
		w := committed(t, v2, false)
		w.node.onApply = rebooting
		w.proceed()
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseApplying)
		w.wantReason("Rebooting")
		w.node.boot++
		w.node.current = v2
		w.start()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-1-1 v2")
	})
	bubble(t, "falls back", func(t *testing.T) {
		w := committed(t, v2, false)
		w.node.onApply = rebooting
		w.proceed()
		w.passes(time.Minute)
		w.node.boot++
		w.start()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("FellBack")
	})
	bubble(t, "does not", func(t *testing.T) {
		w := committed(t, v2, false)
		w.node.onApply = rebooting
		w.proceed()
		w.passes(29 * time.Minute)
		w.wantPhase(protocol.PhaseApplying)
		w.passes(2 * time.Minute)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantCalls("apply uid-1-1 v2")
	})
}
