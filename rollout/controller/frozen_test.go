// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

// R-RO-05: a leader that is frozen at any write, for long, and goes on with what it had decided, breaks no cap and disrupts nobody.
func TestFrozenController(t *testing.T) {
	for at := 1; at < 90; at++ {
		synctest.Test(t, func(t *testing.T) { frozenAt(t, at) })
		if t.Failed() {
			t.Fatalf("frozen at write %d", at)
		}
	}
}

func frozenAt(t *testing.T, at int) {
	w := newWorld(t, 6, 2)
	frozen := w.c.Connect()
	thaw := make(chan struct{})
	n := 0
	frozen.OnWrite = func(_ string, done bool) {
		if n++; !done && n >= 2*at && n < 2*at+2 {
			<-thaw
		}
	}
	first, err := controller.New(frozen.Options())
	if err != nil {
		t.Fatal(err)
	}
	w.want()
	ended := make(chan struct{})
	go func() { // works alone until it freezes
		defer close(ended)
		for range 60 {
			if _, err := first.Reconcile(quiet(t), ""); err != nil {
				t.Errorf("the frozen controller: %v", err)
			}
			w.c.Agents()
			<-time.After(tick)
		}
	}()
	<-time.After(20 * tick)
	for range at % 50 { // the other one goes on while the first is frozen
		w.step()
	}
	close(thaw)
	<-ended
	w.untilPhase(rollout.Completed)
	w.steps(3)
	w.sound()
	w.tidy()
	w.once(6, "v2")
}

// R-RO-05: a leader that was frozen, and whose list of shadows is behind that of Nodes when it goes on, cordons no node again whose attempt is over.
func TestThawedControllerCordonsNothingTwice(t *testing.T) {
	for at := 2; at < 80; at += 3 {
		synctest.Test(t, func(t *testing.T) { thawedAt(t, at) })
		if t.Failed() {
			t.Fatalf("frozen at write %d", at)
		}
	}
}

func thawedAt(t *testing.T, at int) {
	w := newWorld(t, 6, 2)
	frozen := w.c.Connect()
	thaw := make(chan struct{})
	n := 0
	var thawed time.Time
	count, cordons := counted()
	frozen.OnWrite = func(op string, done bool) {
		if n++; !done && n >= at && thawed.IsZero() {
			<-thaw
			thawed = time.Now()
		}
		count(op, done)
	}
	frozen.ShadowLag = func() int {
		if time.Since(thawed) < 12*time.Second {
			return 40
		}
		return 0
	}
	w.client.OnWrite = count
	first, err := controller.New(frozen.Options())
	if err != nil {
		t.Fatal(err)
	}
	w.want()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 60 {
			if _, err := first.Reconcile(quiet(t), ""); err != nil {
				t.Errorf("the frozen controller: %v", err)
			}
			w.c.Agents()
			<-time.After(tick)
		}
	}()
	<-time.After(20 * tick)
	w.steps(4 + at%20)
	close(thaw)
	<-ended
	w.untilPhase(rollout.Completed)
	w.sound()
	w.once(6, "v2")
	onceEach(t, cordons)
}

// R-RO-05: a leader is frozen before the first cordon of an attempt that is ordered back meanwhile. It looks after the cordon, takes nothing off the node, and
// gives it back.
func TestFrozenBeforeTheFirstCordon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		frozen := w.c.Connect()
		reached, thaw := make(chan struct{}), make(chan struct{})
		cordons, evictions := 0, 0
		frozen.OnWrite = func(op string, done bool) {
			switch cordon := strings.HasPrefix(op, "cordon"); {
			case cordon && !done && cordons == 0:
				close(reached)
				<-thaw
			case cordon && done:
				cordons++
			case done && strings.HasPrefix(op, "evict"):
				evictions++
			}
		}
		first, err := controller.New(frozen.Options())
		if err != nil {
			t.Fatal(err)
		}
		w.want()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for cordons == 0 {
				w.c.Agents()
				if _, err := first.Reconcile(quiet(t), ""); err != nil {
					t.Errorf("the frozen controller: %v", err)
				}
				<-time.After(tick)
			}
		}()
		<-reached
		w.ask("stop", rollout.Abort)
		for range 5 { // the agent says nothing
			w.pass()
			<-time.After(tick)
		}
		close(thaw)
		<-ended
		if cordons != 1 || evictions != 0 {
			t.Errorf("R-RO-05: of a node whose attempt was ordered back %d cordons were put on, and pods were taken %d times; want one, and none", cordons, evictions)
		}
		w.until("nothing is in flight", func() bool { return len(w.c.Ledger().Slots) == 0 })
		w.steps(3)
		w.sound()
		w.tidy()
	})
}

// A Node that carries the number of a later attempt, as of a domain whose ledger is gone, is looked at before it is cordoned, and then it is.
func TestAttemptsAreCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		for i := range 2 {
			w.c.EditNode(name(i), func(n *controller.Node) { n.Annotations["rollout.belay.dev/last-attempt"] = "999" })
		}
		count, cordons := counted()
		w.client.OnWrite = count
		w.want()
		w.untilPhase(rollout.Completed)
		w.steps(3)
		w.sound()
		w.tidy()
		w.once(2, "v2")
		if len(cordons) != 2 {
			t.Errorf("the cordons are %v, want one of each node", cordons)
		}
		onceEach(t, cordons)
		for i := range 2 {
			if got := w.c.Node(name(i)).Annotations["rollout.belay.dev/last-attempt"]; got == "999" || got == "" {
				t.Errorf("the last attempt of %q is %q, want the one that it was", name(i), got)
			}
		}
	})
}

// counted counts how often each node was cordoned that was not.
func counted() (count func(op string, done bool), cordons map[string]int) {
	cordons, closed := map[string]int{}, map[string]bool{}
	return func(op string, done bool) {
		kind, node, _ := strings.Cut(op, " ")
		if done && kind == "cordon" && !closed[node] {
			cordons[node], closed[node] = cordons[node]+1, true
		} else if done && kind == "uncordon" {
			closed[node] = false
		}
	}, cordons
}

func onceEach(t *testing.T, cordons map[string]int) {
	t.Helper()
	for node, times := range cordons {
		if times > 1 {
			t.Errorf("R-RO-05: node %q was cordoned %d times", node, times)
		}
	}
}

// R-RO-05: two controllers work without a leader, and the list of shadows of one is behind its list of Nodes: it cordons no node again that the other has
// given back, whether its mark is still there or not.
func TestLateShadowsCordonNothingTwice(t *testing.T) {
	for lag := range 60 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 2)
			late := w.c.Connect()
			late.ShadowLag = func() int { return lag }
			count, cordons := counted()
			late.OnWrite, w.client.OnWrite = count, count
			other, err := controller.New(late.Options())
			if err != nil {
				t.Fatal(err)
			}
			w.want()
			for range 60 {
				w.step()
				if _, err := other.Reconcile(quiet(t), ""); err != nil {
					t.Errorf("the late controller: %v", err)
				}
			}
			w.untilPhase(rollout.Completed)
			w.sound()
			w.once(6, "v2")
			onceEach(t, cordons)
		})
		if t.Failed() {
			t.Fatalf("with shadows that are %d writes old", lag)
		}
	}
}
