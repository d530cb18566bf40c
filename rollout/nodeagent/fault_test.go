// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// Each call of the shadow in turn goes wrong, in each way there is, also one that was done and looks as if it was not: the attempt comes to the
// same end, the node sees the same, and every report is one that can follow the one before.
func TestFaultAtAnyCall(t *testing.T) {
	for _, fault := range []rollouttest.Fault{rollouttest.Conflict, rollouttest.Unreachable, rollouttest.LostAnswer} {
		for _, c := range courses() {
			t.Run(string(fault)+"/"+c.name, func(t *testing.T) {
				for k := 1; ; k += raceshare.Step(t) {
					hit := false
					synctest.Test(t, func(t *testing.T) {
						n, set := 0, false
						w := c.play(t, func(w *world) {
							if set {
								return
							}
							set = true
							w.shadows.OnCall = func(op string) rollouttest.Fault {
								if op == "read" && fault != rollouttest.Unreachable {
									return rollouttest.NoFault
								}
								if n++; n == k {
									hit = true
									return fault
								}
								return rollouttest.NoFault
							}
						})
						w.wantPhase(c.end)
						w.wantEffects(c)
						w.wantOneCommit()
					})
					if !hit {
						return
					}
				}
			})
		}
	}
}

// wantOneCommit fails if an attempt was begun twice.
func (w *world) wantOneCommit() {
	w.t.Helper()
	n := 0
	var before nodeagent.Status
	for _, s := range w.shadows.History() {
		if s.Report.Attempt > before.Report.Attempt {
			n++
		}
		before = s
	}
	w.want("commits", n, 1)
}

// A shadow that is deleted by hand and made anew, before any pass of an attempt: what has begun comes to its end and is told, what has not is
// given up. No attempt is begun again.
func TestShadowLostAnywhere(t *testing.T) {
	for _, c := range courses() {
		t.Run(c.name, func(t *testing.T) {
			for k := 1; k < 6; k++ {
				synctest.Test(t, func(t *testing.T) {
					n, phase, begun := 0, protocol.Phase(""), false
					w := c.play(t, func(w *world) {
						if w.shadows.Shadow().Orders.Grant == 0 {
							return
						}
						if n++; n == k {
							phase, begun = w.phase(), len(w.node.calls) > 0
							w.shadows.Delete()
							w.passes(time.Second)
							w.shadows.Create("n", w.uid, w.ledger)
							w.passes(time.Minute) // it says what it did
						}
					})
					if phase == protocol.PhaseCommitted && !begun {
						w.wantPhase(protocol.PhaseUndone)
						w.wantCalls()
					} else if phase != "" {
						w.wantPhase(c.end)
						w.wantEffects(c)
					}
					if w.status().Report.Attempt > 1 || !w.status().Report.Known {
						t.Errorf("lost in %q: got %+v, want attempt 1 at most, and known", phase, w.status().Report)
					}
				})
			}
		})
	}
}

// A revision that cuts the node off is taken back without a word from the API server, which is told when it can be reached again.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.o.RevertBroken = true
		w.start()
		off := false
		w.shadows.OnCall = func(string) rollouttest.Fault {
			if off {
				return rollouttest.Unreachable
			}
			return rollouttest.NoFault
		}
		w.node.onApply = func(a nodeagent.Attempt) error { w.node.effect("apply", a); off = true; return nil }
		w.node.onRevert = func(a nodeagent.Attempt) error { w.node.effect("revert", a); return nil }
		w.node.health = sick
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseApplying)
		w.wantCalls("apply uid-1-1 v2", "revert uid-1-1 v1")
		off = false
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("Sick")
	})
}

// Without its record the agent has the shadow: what may have begun is not begun again, the node is looked at.
func TestRecordLost(t *testing.T) {
	for _, c := range []struct {
		name     string
		runs     protocol.Revision
		disrupts nodeagent.Disruption
		want     protocol.Phase
	}{
		{"target", v2, nodeagent.DisruptionReboot, protocol.PhaseDone},
		{"before", v1, nodeagent.DisruptionReboot, protocol.PhaseFailedClean},
		{"neither", protocol.Revision{}, nodeagent.DisruptionReboot, protocol.PhaseFailedBroken},
		{"target, begun in silence", v2, nodeagent.DisruptionDrain, protocol.PhaseDone},
		{"before, begun in silence", v1, nodeagent.DisruptionDrain, protocol.PhaseFailedClean},
		{"neither, begun in silence", protocol.Revision{}, nodeagent.DisruptionDrain, protocol.PhaseFailedBroken},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w := newWorld(t)
			w.node.disrupts = c.disrupts
			w.passes(time.Minute)
			w.grant(v2, false)
			w.passes(time.Minute)
			w.wantPhase(protocol.PhaseCommitted)
			w.proceed()
			w.die = func(_ int, name string) bool { return name == "before apply" }
			_, err := w.pass()
			w.want("pass", err, "killed")
			w.die = func(int, string) bool { return false }
			w.disk.seen, w.disk.durable = nil, nil
			w.node.calls, w.node.current = nil, c.runs
			w.passes(time.Hour)
			w.wantPhase(c.want)
			w.wantCalls()
		})
	}
	bubble(t, "committed", func(t *testing.T) {
		w := newWorld(t)
		w.node.current, w.node.previous = v2, v1
		w.passes(time.Minute)
		w.grant(v1, true)
		w.passes(time.Minute)
		w.disk.seen, w.disk.durable = nil, nil
		w.passes(time.Minute)
		if !strings.Contains(string(w.disk.durable), `"attempt":1`) {
			t.Errorf("the disk has %s, want the record again", w.disk.durable)
		}
		w.proceed()
		w.passes(time.Hour)
		w.wantCalls("revert uid-1-1 v1") // not an Apply
		w.wantPhase(protocol.PhaseDone)
	})
}

// A record that is there and can't be read, or has another format, is not an empty one: nothing is touched.
func TestRecordUnreadable(t *testing.T) {
	for _, payload := range []string{"", "{", `{"format":2}`, `{"format":1,"uid":"uid-1","new":true}`} {
		bubble(t, payload, func(t *testing.T) {
			w := newWorld(t)
			w.passes(time.Minute)
			w.grant(v2, false)
			w.disk.seen = []byte(payload)
			if _, err := w.pass(); err == nil || !strings.Contains(err.Error(), "rollout-attempt") {
				t.Errorf("got error %v, want one that names the record", err)
			}
			w.passes(time.Minute)
			w.wantPhase("")
		})
	}
}

// A disk that takes no writes keeps the agent from committing.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.grant(v2, false)
		w.disk.refuse = errBoom
		w.passes(time.Minute)
		w.wantPhase("")
		w.disk.refuse = nil
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseCommitted)
	})
}

// R-RO-02: the agent changes nothing but its own status, in any course: the orders of the shadow are those of the controller, to the last.
func TestOrdersAreTheControllers(t *testing.T) {
	for _, c := range courses() {
		bubble(t, c.name, func(t *testing.T) {
			var orders []protocol.Orders
			w := c.play(t, func(w *world) { orders = append(orders, w.shadows.Shadow().Orders) })
			last := w.shadows.Shadow().Orders
			w.want("grant", last.Grant, 1)
			w.want("revoked", last.Revoked, 0)
			w.want("undo", last.Undo, 0)
			if !slices.IsSortedFunc(orders, func(a, b protocol.Orders) int { return int(a.Grant+a.Proceed) - int(b.Grant+b.Proceed) }) {
				t.Errorf("orders went back: %+v", orders)
			}
		})
	}
}
