// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
)

const (
	secondUID  = "rollout-2"
	secondName = "zz-second"
)

// second is the policy of another rollout of the same nodes.
func (w *world) second() rollout.Policy {
	policy := w.policy
	policy.UID, policy.Target = secondUID, revision("v3")
	return policy
}

// overlapping has two rollouts that select the same n nodes, of which the second was created at the same time.
func overlapping(t *testing.T, n int) *world {
	w := newWorld(t, n, 1)
	w.want()
	w.c.PutRollout(secondName, w.second())
	return w
}

// R-RO-27: a node that two rollouts select belongs to the first of them, and no other one disrupts it: they say so, and are not completed.
func TestNodeBelongsToOneRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := overlapping(t, 3)
		w.untilPhase(rollout.Completed)
		w.steps(100)
		w.sound()
		w.tidy()
		w.once(3, "v2")
		_, shown, _ := w.c.Rollout(secondUID)
		if shown.Phase != rollout.Running || shown.Counts.Selected != 3 || shown.Counts.Done != 0 || shown.Waiting[rollout.ReasonOther] != 3 {
			t.Errorf("R-RO-27: the second one shows %+v, want it running with 3 nodes that wait for %s", shown, rollout.ReasonOther)
		}
		if !strings.Contains(shown.Message, `"workers"`) || strings.Contains(shown.Message, string(rollout.ReasonUnhealthy)) || len(shown.Findings) != 1 ||
			shown.Findings[0].Check != "Overlap" || !strings.Contains(shown.Findings[0].Message, `3 nodes`) {
			t.Errorf("R-RO-27: the second one says %q and finds %+v, want the first one's name and the number of nodes", shown.Message, shown.Findings)
		}
		w.c.EditRollout(uid, func(r *controller.Rollout) { r.Deleting = true })
		w.until("the first is gone, and the second has the nodes", func() bool {
			_, shown, _ := w.c.Rollout(secondUID)
			return shown.Phase == rollout.Completed
		})
		w.steps(3)
		w.sound()
		w.tidy()
		if got := w.c.Runs("v3"); got != 3 {
			t.Errorf("R-RO-27: %d nodes run v3, want 3", got)
		}
	})
}

// The first is the one that was created first, and only then by name.
func TestFirstRolloutIsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := overlapping(t, 3)
		w.c.EditRollout(uid, func(r *controller.Rollout) { r.Created = time.Now() })
		w.c.EditRollout(secondUID, func(r *controller.Rollout) { r.Created = time.Now().Add(-time.Hour) })
		w.steps(100)
		w.sound()
		w.tidy()
		w.once(3, "v3")
	})
}

// What a younger one has begun it brings to its end, when an older one comes to select the node.
func TestOlderRolloutWaitsForWhatHasBegun(t *testing.T) {
	for at := 1; at < 12; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3, 1)
			w.c.PutRollout(secondName, w.second())
			w.steps(at)
			w.want() // it comes first by its name
			w.untilPhase(rollout.Completed)
			w.steps(20)
			w.sound()
			w.tidy()
			if got := w.c.Runs("v2"); got != 3 {
				t.Errorf("R-RO-27: step %d: %d nodes run v2, want 3", at, got)
			}
			for node, times := range w.c.Updates() {
				if times != 1 {
					t.Errorf("R-RO-27: step %d: %q was applied %d times, want once", at, node, times)
				}
			}
		})
	}
}

// A rollout whose policy can't be followed keeps the nodes that it had when it began: that may be over in a moment.
func TestInvalidRolloutKeepsItsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := overlapping(t, 3)
		w.untilPhase(rollout.Completed)
		w.spoil(rollout.Verb{})
		w.steps(50)
		if got := w.c.Runs("v2"); got != 3 {
			t.Errorf("R-RO-27: %d nodes run v2, want 3", got)
		}
		w.sound()
		w.tidy()
	})
}

// Nodes that only one of them selects are no concern of the other.
func TestOverlapIsOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 1)
		w.want()
		policy := w.second()
		policy.Groups = []rollout.Group{{Name: "a", Selector: labels.SelectorFromSet(labels.Set{zone: "a"})}}
		w.c.PutRollout(secondName, policy)
		w.c.AddNode(name(50), map[string]string{zone: "a"}, w.policy.Completed.Ref())
		w.c.Behave(name(50), controllertest.Behavior{})
		w.steps(100)
		w.sound()
		w.tidy()
		w.once(4, "v2")
		if got := w.c.Runs("v3"); got != 1 {
			t.Errorf("R-RO-27: %d nodes run v3, want the one that no other rollout selects", got)
		}
	})
}
