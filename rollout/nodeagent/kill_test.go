// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// A course is one attempt from its grant to its end.
type course struct {
	name   string
	setup  func(w *world)
	revert bool
	to     protocol.Revision
	end    protocol.Phase
	// effects that the node sees, in all.
	effects []string
}

func sick() (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Fail, Reason: "Sick"}, nil
}

// courses are all ways that an attempt can take. Each is there twice: said to take a boot, and said to take none, so that its beginning is not
// reported.
func courses() []course {
	all := ways()
	for _, c := range ways() {
		setup := c.setup
		c.name += ", not said to boot"
		c.setup = func(w *world) {
			if w.node.disrupts = nodeagent.DisruptionDrain; setup != nil {
				setup(w)
			}
		}
		all = append(all, c)
	}
	return all
}

func ways() []course {
	return []course{
		{name: "applied", to: v2, end: protocol.PhaseDone, effects: []string{"apply uid-1-1"}},
		{
			name: "rebooted", to: v2, end: protocol.PhaseDone, effects: []string{"apply uid-1-1"},
			setup: func(w *world) { w.node.onApply = w.node.reboots("apply") },
		},
		{
			name: "reverted", to: v1, revert: true, end: protocol.PhaseDone, effects: []string{"revert uid-1-1"},
			setup: func(w *world) { w.node.current, w.node.previous = v2, v1 },
		},
		{
			name: "reverted by a reboot", to: v1, revert: true, end: protocol.PhaseDone, effects: []string{"revert uid-1-1"},
			setup: func(w *world) {
				w.node.current, w.node.previous, w.node.onRevert = v2, v1, w.node.reboots("revert")
			},
		},
		{
			name: "sick and taken back", to: v2, end: protocol.PhaseFailedClean, effects: []string{"apply uid-1-1", "revert uid-1-1"},
			setup: func(w *world) { w.node.health, w.o.RevertBroken = sick, true },
		},
		{
			name: "sick and taken back by a reboot", to: v2, end: protocol.PhaseFailedClean, effects: []string{"apply uid-1-1", "revert uid-1-1"},
			setup: func(w *world) {
				w.node.health, w.o.RevertBroken, w.node.onRevert = sick, true, w.node.reboots("revert")
			},
		},
		{
			name: "sick and left", to: v2, end: protocol.PhaseFailedBroken, effects: []string{"apply uid-1-1"},
			setup: func(w *world) { w.node.health = sick },
		},
		{
			name: "declined", to: v2, end: protocol.PhaseRefused,
			setup: func(w *world) {
				w.node.pre = func() error { return &nodeagent.DeclinedError{Reason: "Busy", Message: "a backup runs"} }
			},
		},
		{
			name: "failed", to: v2, end: protocol.PhaseFailedClean,
			setup: func(w *world) { w.node.onApply = func(nodeagent.Attempt) error { return errBoom } },
		},
		{
			name: "failed half way", to: v2, end: protocol.PhaseFailedBroken,
			setup: func(w *world) {
				w.node.onApply = func(nodeagent.Attempt) error { w.node.current = protocol.Revision{}; return errBoom }
			},
		},
	}
}

// play goes through a course, with the controller's part. between is called before each pass.
func (c course) play(t *testing.T, between func(w *world)) *world {
	t.Helper()
	w := newWorld(t)
	if c.setup != nil {
		c.setup(w)
	}
	w.start()
	granted := false
	for range 200 {
		between(w)
		after, err := w.pass()
		sh := w.shadows.Protocol()
		switch {
		case err != nil:
			after = time.Second
		case sh.Report.Known && !granted:
			w.grant(c.to, c.revert)
			granted, after = true, time.Second
		case sh.Report.Phase == protocol.PhaseCommitted && sh.Orders.Proceed < sh.Report.Attempt:
			w.proceed()
			after = time.Second
		case granted && after == 0 || sh.Report.Phase == protocol.PhaseFailedBroken:
			return w
		}
		time.Sleep(after)
		synctest.Wait()
	}
	t.Fatalf("no end: %+v", w.status())
	return nil
}

// R-RO-01, the agent's side: killed before or after any write, of the disk and of the shadow, and before or after any call that changes the
// node, the next agent brings the attempt to the same end. The node sees each change once for each key.
func TestKilledAnywhere(t *testing.T) {
	for _, c := range courses() {
		t.Run(c.name, func(t *testing.T) {
			var want nodeagent.Status
			ops := 0
			synctest.Test(t, func(t *testing.T) {
				w := c.play(t, func(*world) {})
				want, ops = w.status(), w.ops
				w.wantPhase(c.end)
				w.wantEffects(c)
			})
			for k := 1; k <= ops; k += raceshare.Step(t) {
				synctest.Test(t, func(t *testing.T) {
					at := ""
					w := c.play(t, func(w *world) {
						w.die = func(op int, name string) bool {
							if op == k {
								at = name
							}
							return op == k
						}
					})
					if got := w.status(); got != want {
						t.Errorf("killed %s, op %d: got %+v, want %+v", at, k, got, want)
					}
					w.wantEffects(c)
				})
			}
			t.Logf("killed at one in %d of %d places", raceshare.Step(t), ops)
		})
	}
}

func (w *world) wantEffects(c course) {
	w.t.Helper()
	var got []string
	for e, n := range w.node.effects {
		if got = append(got, e); n != 1 {
			w.t.Errorf("%s: %d times, want once", e, n)
		}
	}
	slices.Sort(got)
	w.want("effects", got, fmt.Sprint(c.effects))
}

// A power cut at any place, with another boot ID after it: the attempt ends by what the node runs, and nothing is called with a key of a boot
// before. R-RO-34: what the shadow says of the node is the truth.
func TestPowerCutAnywhere(t *testing.T) {
	for _, c := range courses() {
		t.Run(c.name, func(t *testing.T) {
			for k := 1; ; k += raceshare.Step(t) {
				cut := false
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					w := c.play(t, func(w *world) {
						w.die = func(op int, _ string) bool {
							if op == k {
								cut, calls = true, len(w.node.calls)
								w.node.boot++
							}
							return op == k
						}
					})
					if s := w.status(); s.Current != w.node.current || s.BootID != fmt.Sprintf("boot-%d", w.node.boot) {
						t.Errorf("op %d: the shadow says that %q runs since %q, want %q since boot-%d", k, s.Current, s.BootID, w.node.current, w.node.boot)
					}
					// A way back that a boot has cut short leaves the node broken, for the controller to decide.
					if p := w.phase(); !p.AtRest() && p != c.end && (!w.o.RevertBroken || p != protocol.PhaseFailedBroken) {
						t.Errorf("op %d: the attempt ends %s, want at rest or %s", k, p, c.end)
					}
					for _, call := range w.node.calls[calls:] {
						if slices.Contains(w.node.calls[:calls], call) {
							t.Errorf("op %d: %q was called again after a boot", k, call)
						}
					}
				})
				if !cut {
					return
				}
			}
		})
	}
}

// Each disk write in turn is seen and not acknowledged, and the agent is killed at the next place: nothing was done on the strength of it. What the
// machine asks of the disk is in its change.
func TestUnconfirmedWrites(t *testing.T) {
	for _, c := range courses() {
		t.Run(c.name, func(t *testing.T) {
			for k := 1; ; k += raceshare.Step(t) {
				failed := false
				synctest.Test(t, func(t *testing.T) {
					n := 0
					w := c.play(t, func(w *world) {
						w.disk.fault = func() error {
							if n++; n == k {
								failed = true
								return errBoom
							}
							return nil
						}
					})
					w.wantPhase(c.end)
					w.wantEffects(c)
				})
				if !failed {
					return
				}
			}
		})
	}
}
