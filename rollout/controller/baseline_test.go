// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

// unhealthy has no baseline.
type unhealthy struct {
	controller.Health
	none *bool
}

func (h unhealthy) Baseline(ctx context.Context, n controller.Node) (string, error) {
	if *h.none {
		return "", errNo
	}
	return h.Health.Baseline(ctx, n)
}

// R-RO-10: a node of which nobody knows what it was like before is not granted, and not cordoned.
func TestNoGrantWithoutABaseline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		none := true
		w.o.Health = unhealthy{w.o.Health, &none}
		w.start()
		w.want()
		w.until("the node has a slot", func() bool { return len(w.c.Ledger().Slots) > 0 })
		w.steps(3)
		if sh, _ := w.c.Shadow(name(0)); sh.Orders.Grant != 0 || len(w.errs) == 0 {
			t.Errorf("the node has the orders %+v, and the errors are %v; want no grant, and the reason", sh.Orders, w.errs)
		}
		none, w.errs = false, nil
		w.untilPhase(rollout.Completed)
		w.once(1, "v2")
		w.sound()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		none := false
		w.o.Health = unhealthy{w.o.Health, &none}
		w.start()
		w.want()
		w.until("the agent has committed", func() bool { sh, _ := w.c.Shadow(name(0)); return sh.Report.Attempt > 0 })
		none = true
		w.steps(3)
		if n := w.c.Node(name(0)); n.Unschedulable || len(w.errs) == 0 {
			t.Errorf("the node is cordoned: %t, and the errors are %v; want no cordon, and the reason", n.Unschedulable, w.errs)
		}
		none, w.errs = false, nil
		w.untilPhase(rollout.Completed)
		w.once(1, "v2")
		w.sound()
	})
}
