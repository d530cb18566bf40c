// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// An attempt that takes no boot is not reported to begin; one that may take one, or goes back, is. The disk knows in any case.
func TestBeginningIsReportedBeforeABoot(t *testing.T) {
	slow, fast := []protocol.Phase{"Committed", "Applying", "Verifying", "Done"}, []protocol.Phase{"Committed", "Verifying", "Done"}
	for _, c := range []struct {
		disrupts nodeagent.Disruption
		revert   bool
		want     []protocol.Phase
	}{
		{nodeagent.DisruptionNone, false, fast},
		{nodeagent.DisruptionRestart, false, fast},
		{nodeagent.DisruptionDrain, false, fast},
		{nodeagent.DisruptionReboot, false, slow},
		{"", false, slow},
		{"Unheard", false, slow},
		{nodeagent.DisruptionNone, true, slow},
	} {
		bubble(t, string(c.disrupts), func(t *testing.T) {
			w := newWorld(t)
			w.node.disrupts = c.disrupts
			if c.revert {
				w.node.current, w.node.previous = v2, v1
			}
			w.passes(time.Minute)
			if c.revert {
				w.grant(v1, true)
			} else {
				w.grant(v2, false)
			}
			w.passes(time.Minute)
			w.proceed()
			w.passes(time.Hour)
			var phases []protocol.Phase
			for _, s := range w.shadows.History()[1:] {
				phases = append(phases, s.Report.Phase)
			}
			w.want("reports", phases, c.want)
		})
	}
}

// What was said to take no boot and takes one is reported to begin as soon as that is known, with the reason. The next boot is judged.
func TestUnforeseenBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.node.disrupts = nodeagent.DisruptionDrain
		w.node.onApply = func(nodeagent.Attempt) error { return nodeagent.ErrRebooting }
		w.passes(time.Minute)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.proceed()
		w.passes(time.Minute)
		w.wantPhase(protocol.PhaseApplying)
		w.wantReason("Rebooting")
		w.node.current, w.node.boot = v2, 2
		w.start()
		w.passes(time.Hour)
		w.wantPhase(protocol.PhaseDone)
		w.wantCalls("apply uid-1-1 v2")
	})
}
