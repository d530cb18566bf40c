// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// A leapClock is the wall clock, which a test can set forward, so that nothing depends on how fast the machine is.
type leapClock struct{ ahead atomic.Int64 }

func (c *leapClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *leapClock) leap(d time.Duration) { c.ahead.Add(int64(d)) }

// A gate stops one eviction on its way to the server, once the given number have been sent before it.
type gate struct {
	drain.Client
	before  int
	mu      sync.Mutex
	count   int
	reached chan types.UID
	open    chan struct{}
}

func (g *gate) Evict(ctx context.Context, pod drain.PodRef, grace *int64) error {
	g.mu.Lock()
	g.count++
	mine := g.count == g.before+1
	g.mu.Unlock()
	if mine {
		g.reached <- pod.UID
		<-g.open
	}
	return g.Client.Evict(ctx, pod, grace)
}

// windowed gives a Drainer the clock, one eviction at a time, and the gate.
func windowed(clock *leapClock, g *gate) changer {
	return func(o *drain.Options, _ *kube.Cache, _ kubernetes.Interface) (err error) {
		g.Client, g.reached, g.open = o.Client, make(chan types.UID, 1), make(chan struct{})
		o.Now, o.Client = clock.now, g
		o.Scheduler, err = drain.NewScheduler(drain.SchedulerOptions{InFlight: 1, Now: clock.now})
		return err
	}
}

// TestWindowClosesInTheMiddleOfADrain closes the window while the third of six evictions is on its way, and opens the next one. R-DR-12
// Fails when a pass does not look at the clock before each eviction, when the end of a window does not stop the drain, and when the cordon
// is not treated as the policy says.
func TestWindowClosesInTheMiddleOfADrain(t *testing.T) {
	for _, treatment := range []drain.WindowTreatment{"Hold", drain.UndoCordon} {
		t.Run(string(treatment), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			a := c.mustNode(t, "a", workRole).Name
			for i := range 6 {
				c.mustPod(t, fmt.Sprintf("pod-%d", i), "plain", a)
			}
			c.settled(t, 6)
			user := c.name + "-drainer"
			clock, g := &leapClock{}, &gate{before: 2}
			s := setOf(user, drain.Drain, a)
			s.Request.Policy.OutsideWindow = treatment
			opened := clock.now()
			s.Request.Policy.Windows = []drain.Window{{Until: opened.Add(time.Hour)}, {From: opened.Add(3 * time.Hour)}}
			run := start(t, mustConnect(t, c.asDrainer(t, user), windowed(clock, g)), s)

			var third types.UID
			select {
			case third = <-g.reached:
			case <-time.After(patience()):
				t.Fatalf("no third eviction is sent: %s", inJSON(run.last()))
			}
			clock.leap(2 * time.Hour)
			close(g.open)
			c.pausesAfter(t, run, a, user, treatment, third)
			clock.leap(2 * time.Hour)
			must(t, c.touch(t.Context(), a))
			st, err := run.wait(t)
			must(t, err)
			if n := st.Nodes[0]; n.Phase != drain.Drained || n.Outcome != drain.OutcomeDrained || n.Counts.Evicted != 6 {
				t.Errorf("in the next window got %s, want the node drained", inJSON(n))
			}
		})
	}
}

// pausesAfter waits until the pods that were asked in time are gone, and makes sure that no other is, nor its node more than allowed.
func (c *cluster) pausesAfter(t *testing.T, run *running, node, user string, treatment drain.WindowTreatment, third types.UID) {
	t.Helper()
	phase := drain.Paused
	if treatment == drain.UndoCordon {
		phase = drain.Pending
	}
	outside := func(n drain.Status) bool {
		return n.Phase == phase && n.Reason == drain.WindowClosed && c.leftOn(t, node) == 3
	}
	run.reconciled(t, "those that are leaving leave", func(s drain.SetStatus) bool { return len(s.Nodes) == 1 && outside(s.Nodes[0]) })
	c.looksAgain(t, run, node)
	if n := run.last().Nodes[0]; !outside(n) {
		t.Errorf("outside the window got %s, want phase %q and three pods", inJSON(n), phase)
	}
	all, accepted := evictions(t, audited(t, user))
	if len(all) != 3 || len(accepted) != 3 || accepted[third] != 1 {
		t.Errorf("%d evictions were asked for and %d accepted, want 3, the one under way (%s) among them:%s", len(all), len(accepted), third, describe(all))
	}
	hold := treatment == "Hold"
	if n := c.getNode(t, node); n.Spec.Unschedulable != hold || marked(n) != hold {
		t.Errorf("outside the window node %q is unschedulable: %t, marked: %t, want both to be %t", node, n.Spec.Unschedulable, marked(n), hold)
	}
}

func (c *cluster) leftOn(t *testing.T, node string) int {
	t.Helper()
	pods, err := c.podsOn(t.Context(), node)
	must(t, err)
	return len(pods)
}
