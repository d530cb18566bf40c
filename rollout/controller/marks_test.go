// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// While a node has a slot the cluster-autoscaler does not remove it; a mark that somebody else has set stays, before, during and after.
func TestScaleDownMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		for i, theirs := range []string{"true", "false"} {
			w.c.EditNode(name(i), func(n *controller.Node) { n.Annotations[controller.ScaleDownAnnotation] = theirs })
		}
		w.want()
		w.until("the node is being drained", func() bool { return w.c.Node(name(2)).Unschedulable })
		if got := w.c.Node(name(2)).Annotations[controller.ScaleDownAnnotation]; got != "true" {
			t.Errorf("%s is %q on a node with a slot", controller.ScaleDownAnnotation, got)
		}
		w.untilPhase(rollout.Completed)
		w.steps(3)
		for i, want := range []string{"true", "false", ""} {
			if got := w.c.Node(name(i)).Annotations[controller.ScaleDownAnnotation]; got != want {
				t.Errorf("%s of node %d is %q afterwards, want %q as before", controller.ScaleDownAnnotation, i, got, want)
			}
		}
		w.sound()
		w.tidy()
	})
}

// What somebody else has cordoned is not touched, and stays cordoned.
func TestForeignCordonStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		w.c.EditNode(name(0), func(n *controller.Node) { n.Unschedulable = true })
		w.want()
		w.steps(60)
		if n := w.c.Node(name(0)); !n.Unschedulable || n.Annotations[controller.HeldAnnotation] != "" {
			t.Errorf("a node that somebody had cordoned is %+v", n)
		}
		if got := w.c.Runs("v2"); got != 0 {
			t.Errorf("%d nodes were begun, want none: the cap is 1, and a node is away", got)
		}
		w.sound()
	})
}

// R-RO-22: a non-intrusive revision cordons and evicts nothing; the mark of maintenance is set and removed. That holds also for what is left of a
// rollout that is deleted, and of a node that is not selected any more.
func TestNonIntrusive(t *testing.T) {
	for at := range 14 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 2)
			w.policy.Target.Class = rollout.NonIntrusive
			w.want()
			marked := false
			w.until("a node is marked", func() bool { marked = w.c.Writes()["mark"] > 0; return marked })
			switch w.steps(at); at % 3 {
			case 1:
				w.c.EditRollout(uid, func(r *controller.Rollout) { r.Deleting = true })
				w.until("it is gone", func() bool { _, _, there := w.c.Rollout(uid); return !there })
			case 2:
				w.c.EditNode(name(0), func(n *controller.Node) { n.Labels["role"] = "other" })
				w.untilPhase(rollout.Completed)
			default:
				w.untilPhase(rollout.Completed)
				w.once(4, "v2")
			}
			w.steps(5)
			if n := w.c.Writes(); n["cordon"] != 0 || n["evict"] != 0 {
				t.Errorf("R-RO-22: step %d: %d cordons, %d evictions, want none", at, n["cordon"], n["evict"])
			}
			w.sound()
			w.tidy()
		})
	}
}

// R-RO-08: one update moves each edge and its result by one, with the revisions before and after; the number of names is bounded.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		var edges, results []string
		w.o.Metrics = controller.Metrics{
			Transition: func(from, to protocol.State, before, after string) {
				edges = append(edges, fmt.Sprintf("%s %s %s %s", from, to, before, after))
			},
			Update: func(before, after string, r rollout.Result) {
				results = append(results, fmt.Sprintf("%s %s %s", before, after, r))
			},
		}
		w.start()
		w.want()
		w.untilPhase(rollout.Completed)
		for _, edge := range []string{"Committed Proceeding", "Applying Verifying", "Verifying Done", "Done Resting"} {
			want := edge + " v1 v2"
			if n := count(edges, want); n != 1 {
				t.Errorf("R-RO-08: %q was counted %d times, want once: %q", want, n, edges)
			}
		}
		for _, edge := range edges {
			if f := strings.Fields(edge); f[0] == f[1] {
				t.Errorf("R-RO-08: %q was counted, which is no edge", edge)
			}
		}
		if len(results) != 1 || results[0] != "v1 v2 Succeeded" {
			t.Errorf("R-RO-08: updates %q, want one that has succeeded", results)
		}
		for i := range 3 * controller.MaxRevisions {
			w.policy.Target, w.policy.Completed = revision(fmt.Sprintf("r%d", i)), w.policy.Target
			w.want()
			w.until("the next revision", func() bool { return w.c.Runs(w.policy.Target.Name) == 1 && w.phase() == rollout.Completed })
		}
		names := map[string]bool{}
		for _, r := range results {
			f := strings.Fields(r)
			names[f[0]], names[f[1]] = true, true
		}
		if len(names) > controller.MaxRevisions+1 || !names[controller.OtherRevision] {
			t.Errorf("R-RO-08: metrics were told %d names of revisions, want %d and %q", len(names), controller.MaxRevisions, controller.OtherRevision)
		}
	})
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// recorded is a recorder.
type recorded struct{ events []string }

func (r *recorded) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.events = append(r.events, kind+" "+reason+" "+fmt.Sprintf(note, args...))
}

// Events and notices are given on edges, once each.
func TestEdgesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 1)
		w.policy.Detectors = nil
		w.c.Behave(name(0), failing())
		var notices []rollout.Phase
		r := &recorded{}
		w.o.Notify, w.o.Recorder = func(n controller.Notice) { notices = append(notices, n.To) }, r
		w.start()
		w.want()
		w.c.EditRollout(uid, func(o *controller.Rollout) { o.Object = &corev1.ConfigMap{} })
		w.untilPhase(rollout.Frozen)
		w.steps(20)
		if want := []rollout.Phase{rollout.Running, rollout.Frozen}; !slices.Equal(notices, want) {
			t.Errorf("notices %q, want %q", notices, want)
		}
		if n := len(slices.DeleteFunc(r.events, func(e string) bool { return !strings.HasPrefix(e, "Warning Frozen") })); n != 1 {
			t.Errorf("%d events of the freeze, want 1", n)
		}
	})
}

// Run passes when it is woken and when it has asked for it, and otherwise not; it ends with its context.
func TestRunWorksWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		var passes atomic.Int64
		w.o.Metrics.Pass = func(time.Duration, error) { passes.Add(1) }
		w.start()
		ctx, cancel := context.WithCancel(quiet(t))
		wake, ended := make(chan struct{}, 1), make(chan error, 1)
		go func() { ended <- w.ctl.Run(ctx, wake) }()
		<-time.After(time.Hour)
		if n := passes.Load(); n != 1 {
			t.Errorf("%d passes without a wake-up, want the first alone", n)
		}
		w.want()
		for range 100 {
			w.c.Agents()
			wake <- struct{}{}
			<-time.After(tick)
		}
		if w.phase() != rollout.Completed {
			t.Errorf("the rollout is %s", w.phase())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run has returned %v", err)
		}
	})
}
