// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// attempts is a node with one pod that may leave, and a NodeDrainer.
func attempts(t *testing.T, budget string) (*draintest.Cluster, *drain.NodeDrainer, string) {
	t.Helper()
	c := draintest.Start(t, draintest.Options{})
	c.AddNode("n")
	c.AddNode("m")
	c.AddWorkload(draintest.Workload{Namespace: "shop", Name: "web", Replicas: 1, On: []string{"n"}})
	if budget != "" {
		c.AddBudget(draintest.MinAvailable("shop", "web", budget, map[string]string{"app": "web"}))
	}
	d, err := drain.New(drain.Options{Cache: c, Client: c})
	if err != nil {
		t.Fatal(err)
	}
	settle := time.Second
	return c, &drain.NodeDrainer{Drainer: d, Holder: "rollout", Policy: drain.Policy{Settle: &settle}}, string(c.LiveNode("n").UID)
}

// repeat calls until it is done.
func repeat(t *testing.T, what string, call func() (bool, error)) {
	t.Helper()
	for range 100 {
		done, err := call()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if done {
			return
		}
		<-time.After(5 * time.Second)
	}
	t.Fatalf("%s: not done after 100 calls", what)
}

// An attempt is cordoned, drained and given back; nothing is drained under the cordon of another attempt.
func TestAttemptIsDrainedUnderItsOwnCordon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		ctx := t.Context()
		if empty, _, _, err := d.Drain(ctx, "n", uid, 7, false); empty || err != nil || c.LiveNode("n").Spec.Unschedulable {
			t.Errorf("Drain without a cordon: empty %t, %v, and the node is cordoned: %t; want nothing done", empty, err, c.LiveNode("n").Spec.Unschedulable)
		}
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 7, true) })
		if k, held := d.Held(c.LiveNode("n").Annotations); !held || k != 7 {
			t.Errorf("Held: %d, %t, want attempt 7", k, held)
		}
		if _, _, _, err := d.Drain(ctx, "n", uid, 6, false); err != nil || len(c.LivePods("n")) != 1 {
			t.Errorf("Drain of attempt 6 under the cordon of 7: %v, %d pods left, want it to touch nothing", err, len(c.LivePods("n")))
		}
		repeat(t, "Drain", func() (bool, error) {
			empty, blocked, _, err := d.Drain(ctx, "n", uid, 7, false)
			if blocked != "" {
				t.Errorf("blocked: %s", blocked)
			}
			return empty, err
		})
		if n := len(c.LivePods("n")); n != 0 {
			t.Errorf("%d pods are on the drained node", n)
		}
		if done, err := d.Release(ctx, "n", uid, 6); !done || err != nil || !c.LiveNode("n").Spec.Unschedulable {
			t.Errorf("Release of attempt 6: %t, %v, want the cordon of 7 left alone", done, err)
		}
		repeat(t, "Release", func() (bool, error) { return d.Release(ctx, "n", uid, 7) })
		if n := c.LiveNode("n"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
			t.Errorf("the node is not given back: %t, %v", n.Spec.Unschedulable, n.Annotations)
		}
	})
}

// A drain of an earlier attempt leaves the cordon of a later one as it is.
func TestEarlierAttemptLeavesTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(t.Context(), "n", uid, 7, true) })
		if _, _, _, err := d.Drain(t.Context(), "n", uid, 6, false); err != nil {
			t.Error(err)
		}
		if k, _ := d.Held(c.LiveNode("n").Annotations); k != 7 {
			t.Errorf("Drain of attempt 6 under the cordon of 7 has made it the cordon of %d", k)
		}
	})
}

// The Node is written twice for an attempt: when it is cordoned, which begins the drain, and when it is given back.
func TestAttemptWritesItsNodeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		ctx := t.Context()
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 7, true) })
		repeat(t, "Drain", func() (bool, error) { empty, _, _, err := d.Drain(ctx, "n", uid, 7, false); return empty, err })
		repeat(t, "Release", func() (bool, error) { return d.Release(ctx, "n", uid, 7) })
		if log := c.Log(draintest.PatchNode); len(log) != 2 {
			t.Errorf("the node was written %d times, want twice: %v", len(log), log)
		}
	})
}

// Annotations of others come and go with the cordon, in one write, and only with it; they are asked for with those of the Node that is written.
func TestCordonTakesAnnotationsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		c.UpdateNode("n", func(n *corev1.Node) { n.Annotations = map[string]string{"old": "1", "other": "2"} })
		<-time.After(time.Second)
		asked := 0
		ok := false
		annotate := func(is map[string]string) (map[string]*string, bool) {
			asked++
			next := "after " + is["other"]
			return map[string]*string{"new": &next, "old": nil}, ok
		}
		cordon := func() (bool, error) { return d.CordonWith(t.Context(), "n", uid, 7, true, annotate) }
		if done, err := cordon(); done || err != nil || len(c.Log(draintest.PatchNode)) != 0 || c.LiveNode("n").Spec.Unschedulable {
			t.Errorf("a cordon that is not wanted on this Node says %t, %v, after the writes %v; want false, and no write", done, err, c.Log(draintest.PatchNode))
		}
		ok, asked = true, 0
		repeat(t, "CordonWith", cordon)
		n := c.LiveNode("n")
		_, old := n.Annotations["old"]
		if k, held := d.Held(n.Annotations); !held || k != 7 || !n.Spec.Unschedulable || n.Annotations["new"] != "after 2" || n.Annotations["other"] != "2" || old {
			t.Errorf("the node is cordoned: %t, with annotations %v", n.Spec.Unschedulable, n.Annotations)
		}
		repeat(t, "CordonWith", cordon)
		if log := c.Log(draintest.PatchNode); len(log) != 1 || asked != 1 {
			t.Errorf("the node was written %d times, and it was asked for annotations %d times; want once, though it was called twice", len(log), asked)
		}
	})
}

// A drain that may not begin yet is not entered with the cordon: it begins when it may.
func TestCordonBeforeTheDrainMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		ctx := t.Context()
		opens := time.Now().Add(time.Minute)
		d.Policy.Windows = []drain.Window{{From: opens}}
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 7, true) })
		if text := c.LiveNode("n").Annotations[drain.MarkAnnotation]; strings.Contains(text, `"Drain"`) {
			t.Errorf("the drain has begun before its window opens: %s", text)
		}
		if empty, _, after, err := d.Drain(ctx, "n", uid, 7, false); empty || err != nil || after > time.Minute || len(c.LivePods("n")) != 1 {
			t.Errorf("Drain before its window opens: %t, again after %v, %v, %d pods; want the pod to stay, and to be asked again when it opens",
				empty, after, err, len(c.LivePods("n")))
		}
		<-time.After(time.Until(opens))
		repeat(t, "Drain", func() (bool, error) { empty, _, _, err := d.Drain(ctx, "n", uid, 7, false); return empty, err })
		if log := c.Log(draintest.PatchNode); len(log) != 2 {
			t.Errorf("the node was written %d times, want twice: %v", len(log), log)
		}
	})
}

// R-DR-14: what counts from the beginning of a drain does not run while the node is only cordoned for an attempt that its agent has not answered yet.
func TestCordonAheadOfTheDrainBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "1")
		const patience = 2 * time.Minute
		d.Policy.Escalation = []drain.Escalation{{After: patience, Step: drain.StepDelete}}
		ctx := t.Context()
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 7, false) })
		<-time.After(time.Hour)
		began := time.Now()
		repeat(t, "Drain", func() (bool, error) { empty, _, _, err := d.Drain(ctx, "n", uid, 7, false); return empty, err })
		if took := time.Since(began); took < patience || len(c.LivePods("n")) != 0 {
			t.Errorf("the pod that a budget keeps was deleted %s after the drain began, want %s at least", took, patience)
		}
	})
}

// The cordon of an earlier attempt does not come back over that of a later one, and one that was there before stays.
func TestLaterAttemptAndForeignCordonStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, uid := attempts(t, "")
		ctx := t.Context()
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 8, true) })
		if done, err := d.Cordon(ctx, "n", uid, 7, true); done || err != nil {
			t.Errorf("Cordon for attempt 7 after 8: %t, %v, want it not done", done, err)
		}
		repeat(t, "Release", func() (bool, error) { return d.Release(ctx, "n", uid, 8) })
		other := &drain.NodeDrainer{Drainer: d.Drainer, Holder: "admin"}
		repeat(t, "Cordon by somebody else", func() (bool, error) { return other.Cordon(ctx, "n", uid, 1, true) })
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 9, true) })
		repeat(t, "Release", func() (bool, error) { return d.Release(ctx, "n", uid, 9) })
		if n := c.LiveNode("n"); !n.Spec.Unschedulable {
			t.Error("the cordon of somebody else was taken off")
		}
	})
}

// What is in the way is named with its budget; by force the drain goes on past it, if the drainer has a policy for that.
func TestBlockedAttemptNamesItsCulprit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, uid := attempts(t, "1")
		d.Forced = &drain.Policy{Escalation: []drain.Escalation{{After: time.Second, Step: drain.StepDelete}}}
		ctx := context.WithoutCancel(t.Context())
		repeat(t, "Cordon", func() (bool, error) { return d.Cordon(ctx, "n", uid, 1, true) })
		repeat(t, "the culprit", func() (bool, error) {
			_, blocked, _, err := d.Drain(ctx, "n", uid, 1, false)
			return strings.Contains(blocked, "shop/web") && strings.Contains(blocked, `budget "web"`), err
		})
		forced := d.Forced
		d.Forced = nil
		repeat(t, "what is missing for force", func() (bool, error) {
			_, blocked, _, err := d.Drain(ctx, "n", uid, 1, true)
			return strings.Contains(blocked, "there is no policy for that"), err
		})
		d.Forced = forced
		repeat(t, "the forced drain", func() (bool, error) {
			empty, _, _, err := d.Drain(ctx, "n", uid, 1, true)
			return empty, err
		})
	})
}
