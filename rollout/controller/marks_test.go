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
	"github.com/belayproject/belay/rollout/controller/controllertest"
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

// The mark of a node that is cordoned comes with its cordon, so that the Node is written three times: cordoned, opened, and unmarked. A drainer that
// can't do that costs a write more, and the mark comes before the grant.
func TestMarkComesWithTheCordon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 2)
		w.want()
		w.client.OnWrite = func(kind string, done bool) {
			if node, is := strings.CutPrefix(kind, "cordon "); is && done {
				if a := w.c.Node(node).Annotations; !strings.Contains(a[controller.HeldAnnotation], `"baseline":"2"`) || a[controller.ScaleDownAnnotation] != "true" {
					t.Errorf("node %q is cordoned with annotations %v, want its mark and baseline with the cordon", node, a)
				}
			}
		}
		w.untilPhase(rollout.Completed)
		w.steps(3)
		if n := w.c.Writes(); n["cordon"] != 4 || n["uncordon"] != 4 || n["mark"] != 4 {
			t.Errorf("4 nodes were cordoned %d times, opened %d times, and otherwise annotated %d times, want 4 of each", n["cordon"], n["uncordon"], n["mark"])
		}
		w.sound()
		w.tidy()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 2)
		w.o.Drainer = struct{ controller.Drainer }{w.o.Drainer}
		w.start()
		w.want()
		w.client.OnWrite = func(kind string, done bool) {
			if node, is := strings.CutPrefix(kind, "order "); is && !done && w.c.Node(node).Annotations[controller.HeldAnnotation] == "" {
				t.Errorf("node %q is given orders before it is marked", node)
			}
		}
		w.untilPhase(rollout.Completed)
		w.steps(3)
		if n := w.c.Writes(); n["mark"] != 8 {
			t.Errorf("4 nodes were annotated %d times, want twice each", n["mark"])
		}
		w.sound()
		w.tidy()
	})
}

// A node whose agent does not answer soon is marked by a write of its own, and the autoscaler leaves it alone.
func TestNodeThatWaitsIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.want()
		w.until("the agent has spoken", func() bool { sh, _ := w.c.Shadow(name(0)); return sh.Report.Known })
		w.c.Behave(name(0), controllertest.Behavior{Silent: true})
		var after time.Duration
		for sh, _ := w.c.Shadow(name(0)); !sh.Open(); sh, _ = w.c.Shadow(name(0)) {
			var err error
			if after, err = w.ctl.Reconcile(quiet(t), ""); err != nil || after == 0 || after > 10*time.Second {
				t.Fatalf("a pass asks to be called again in %s, %v; want in 10s at most, for the mark", after, err)
			}
		}
		if a := w.c.Node(name(0)).Annotations; a[controller.HeldAnnotation] != "" {
			t.Errorf("the node is marked when it is granted, with %v: its mark does not wait for the cordon", a)
		}
		for admitted := time.Now(); time.Since(admitted) < 10*time.Second; {
			<-time.After(after)
			var err error
			if after, err = w.ctl.Reconcile(quiet(t), ""); err != nil || after == 0 {
				t.Fatalf("a pass asks to be called again in %s, %v", after, err)
			}
		}
		if a := w.c.Node(name(0)).Annotations; a[controller.ScaleDownAnnotation] != "true" || a[controller.HeldAnnotation] == "" {
			t.Errorf("10s after its admission the node has annotations %v, want it marked", a)
		}
		w.c.Behave(name(0), controllertest.Behavior{})
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.once(1, "v2")
		w.sound()
		w.tidy()
	})
}

// A node that the autoscaler takes between its admission and its cordon, when it is not marked yet, is a node that is gone: its slot is freed by the API
// server's word, nothing was done to it, and the others get the revision within the caps.
func TestAutoscalerTakesANodeBeforeItsCordon(t *testing.T) {
	for _, taken := range []struct {
		when string
		is   func(sh controller.Shadow, slot *protocol.Slot) bool
	}{
		{"it is admitted", func(_ controller.Shadow, slot *protocol.Slot) bool { return slot != nil }},
		{"it is granted", func(sh controller.Shadow, _ *protocol.Slot) bool { return sh.Open() }},
		{"its agent has committed", func(sh controller.Shadow, slot *protocol.Slot) bool {
			return slot != nil && sh.Report.Attempt == slot.Attempt
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, 1)
			w.want()
			gone := ""
			look := func() {
				for i := range 4 {
					sh, _ := w.c.Shadow(name(i))
					if n := w.c.Node(name(i)); gone == "" && taken.is(sh, w.c.Ledger().Slot(n.UID)) {
						if gone = name(i); n.Unschedulable || n.Annotations[controller.ScaleDownAnnotation] != "" {
							t.Errorf("when %s: node %q is cordoned or marked already: %+v", taken.when, n.Name, n)
						}
						w.c.RemoveNode(gone)
					}
				}
			}
			w.client.OnWrite = func(_ string, done bool) {
				if done {
					look()
				}
			}
			w.until("a node is gone", func() bool { look(); return gone != "" })
			w.client.OnWrite = nil
			w.untilPhase(rollout.Completed)
			w.steps(5)
			w.once(3, "v2")
			if sh, there := w.c.Shadow(gone); there {
				t.Errorf("when %s: the shadow of a node that is gone is left: %+v", taken.when, sh)
			}
			w.sound()
			w.tidy()
		})
	}
}

// A scale-down mark that somebody else sets after the Node was read, and before it is cordoned, is theirs: it stays when the node is given back.
func TestScaleDownMarkOfOthersBeforeTheCordon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.want()
		w.client.OnWrite = func(kind string, done bool) {
			if strings.HasPrefix(kind, "cordon ") && !done {
				w.c.EditNode(name(0), func(n *controller.Node) { n.Annotations[controller.ScaleDownAnnotation] = "true" })
			}
		}
		w.untilPhase(rollout.Completed)
		w.steps(3)
		if got := w.c.Node(name(0)).Annotations[controller.ScaleDownAnnotation]; got != "true" {
			t.Errorf("%s is %q afterwards, want what somebody else has set", controller.ScaleDownAnnotation, got)
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
		var want []string
		from := protocol.Resting
		for _, to := range []protocol.State{
			protocol.Admitted, protocol.Granted, protocol.Committed, protocol.Proceeding, protocol.Applying, protocol.Verifying, protocol.Done, protocol.Resting,
		} {
			want = append(want, fmt.Sprintf("%s %s v1 v2", from, to))
			from = to
		}
		if !slices.Equal(edges, want) {
			t.Errorf("R-RO-08: %q were counted, want each edge of the one update once, and no other: %q", edges, want)
		}
		if len(results) != 1 || results[0] != "v1 v2 Succeeded" {
			t.Errorf("R-RO-08: updates %q, want one that has succeeded", results)
		}
		for i := range 3 * 20 {
			w.policy.Target, w.policy.Completed = revision(fmt.Sprintf("r%d", i)), w.policy.Target
			w.want()
			w.until("the next revision", func() bool { return w.c.Runs(w.policy.Target.Name) == 1 && w.phase() == rollout.Completed })
		}
		names := map[string]bool{}
		for _, r := range results {
			f := strings.Fields(r)
			names[f[0]], names[f[1]] = true, true
		}
		if len(names) > 20+1 || !names["other"] {
			t.Errorf("R-RO-08: metrics were told %d names of revisions, want %d and %q", len(names), 20, "other")
		}
	})
}

// R-RO-08: a node that falls back has no slot, and is told of all the same, once.
func TestRelapseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		var results []string
		w.o.Metrics.Update = func(before, after string, r rollout.Result) {
			results = append(results, fmt.Sprintf("%s %s %s", before, after, r))
		}
		w.start()
		w.policy.RetryAfter = time.Hour
		w.want()
		w.untilPhase(rollout.Completed)
		results = nil
		w.c.FallBack(name(0), protocol.Revision{Name: "v1", Digest: "sha256:v1"})
		w.steps(20)
		if len(results) != 1 || !strings.HasSuffix(results[0], " FellBack") {
			t.Errorf("R-RO-08: told %q, want once that it fell back", results)
		}
		w.sound()
	})
}

// R-RO-32: that a rollout is paused for too long, or does not go on for another reason that it shows, is told after each pass, and that this is over.
func TestStalledIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		told := map[string]string{}
		w.o.Metrics.Stalled = func(name, reason string) { told[name] = reason }
		w.start()
		w.want()
		for _, reason := range []string{"", "PausedTooLong", "OverPaused", ""} {
			w.c.EditRollout(uid, func(r *controller.Rollout) { r.Stalled = reason })
			w.step()
			if got, there := told["workers"]; got != reason || !there {
				t.Errorf("R-RO-32: %q was told: %t, want %q", got, there, reason)
			}
		}
		w.c.EditRollout(uid, func(r *controller.Rollout) { r.Stalled = "PausedTooLong" })
		w.step()
		w.c.RemoveRollout(uid)
		w.steps(2)
		if told["workers"] != "" {
			t.Errorf("R-RO-32: of a rollout that is gone %q is told", told["workers"])
		}
	})
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
