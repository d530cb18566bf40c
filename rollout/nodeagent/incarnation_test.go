// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-03: a grant in the shadow of another incarnation of the Node is not honoured, nor is the word to proceed.
func TestOtherIncarnation(t *testing.T) {
	bubble(t, "grant", func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.grant(v2, false)
		w.uid = "uid-2" // registered anew; the old shadow is not collected yet
		w.passes(time.Hour)
		w.wantPhase("")
		if _, err := w.pass(); !errors.Is(err, nodeagent.ErrOtherNode) || !strings.Contains(err.Error(), `"uid-2"`) {
			t.Errorf("got error %v, want ErrOtherNode that names both UIDs", err)
		}
	})
	bubble(t, "proceed", func(t *testing.T) {
		w := committed(t, v2, false)
		w.proceed()
		w.uid = "uid-2"
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseCommitted)
		w.wantCalls()
	})
	bubble(t, "staged", func(t *testing.T) {
		w := newWorld(t)
		w.passes(time.Minute)
		w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Prefetch(v2.String()) })
		w.uid = "uid-2"
		w.passes(time.Minute)
		w.wantCalls()
	})
}

// R-RO-03: a node that has the name of one that is gone, and nothing on its disk, is in no attempt of that one's, however far that was, and says nothing
// in its shadow. With a shadow of its own it is at rest.
func TestAttemptOfAnotherIncarnation(t *testing.T) {
	for _, c := range []struct {
		phase    protocol.Phase
		disrupts nodeagent.Disruption
	}{
		{protocol.PhaseCommitted, nodeagent.DisruptionReboot}, {protocol.PhaseCommitted, nodeagent.DisruptionDrain}, {protocol.PhaseApplying, nodeagent.DisruptionReboot},
		{protocol.PhaseVerifying, nodeagent.DisruptionReboot}, {protocol.PhaseFailedBroken, nodeagent.DisruptionReboot},
	} {
		bubble(t, fmt.Sprintf("%s, takes %s", c.phase, c.disrupts), func(t *testing.T) {
			w := newWorld(t)
			w.node.disrupts = c.disrupts
			w.passes(time.Minute)
			w.grant(v2, false)
			w.passes(time.Minute)
			w.proceed()
			if c.phase != protocol.PhaseCommitted {
				sh, version, err := w.shadows.Read(t.Context())
				sh.Status.Report.Phase = c.phase
				if err = errors.Join(err, w.shadows.Store(t.Context(), sh.Status, version)); err != nil {
					t.Fatal(err)
				}
			}
			before := w.status()
			w.uid, w.disk.seen, w.disk.durable, w.node.calls, w.node.current = "uid-2", nil, nil, nil, protocol.Revision{Name: "v0"}
			w.start()
			w.passes(time.Hour)
			w.want("shadow of the other", w.status(), before)
			if _, err := w.pass(); !errors.Is(err, nodeagent.ErrOtherNode) || w.disk.durable != nil {
				t.Errorf("got error %v and %q on the disk, want ErrOtherNode and nothing", err, w.disk.durable)
			}
			w.shadows.Create("n", "uid-2", w.ledger)
			w.passes(time.Hour)
			w.want("report", w.status().Report, protocol.Report{Known: true})
			w.wantCalls()
		})
	}
}

// A node that was registered anew is a new one if it was at rest, and tells its new shadow if it was not. The numbers of another ledger
// block none of the new one.
func TestRegisteredAnew(t *testing.T) {
	bubble(t, "at rest", func(t *testing.T) {
		w := committed(t, v2, false)
		w.ledger.Epoch = 0 // another cluster
		w.shadows.Create("n", "uid-2", protocol.Ledger{})
		w.uid, w.ledger = "uid-2", protocol.Ledger{}
		w.passes(time.Hour)
		w.want("report", w.status().Report, protocol.Report{Known: true})
		w.grant(v2, false)
		w.passes(time.Minute)
		w.proceed()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-2-1 v2")
	})
	bubble(t, "being changed", func(t *testing.T) {
		w := committed(t, v2, false)
		w.proceed()
		w.node.health = func() (nodeagent.Health, error) { return nodeagent.Health{}, nil }
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseVerifying)
		w.shadows.Create("n", "uid-2", protocol.Ledger{})
		w.uid = "uid-2"
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseVerifying)
		w.want("attempt", w.status().Report.Attempt, 0)
		w.node.health = nil
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-1-1 v2")
	})
}
