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
			if _, err := first.Pass(quiet(t)); err != nil {
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
	cordons, closed := map[string]int{}, map[string]bool{}
	count := func(op string, done bool) {
		kind, node, _ := strings.Cut(op, " ")
		if done && kind == "cordon" && !closed[node] {
			cordons[node], closed[node] = cordons[node]+1, true
		} else if done && kind == "uncordon" {
			closed[node] = false
		}
	}
	frozen.OnWrite = func(op string, done bool) {
		// A cordon that is under way itself comes late: the cluster in memory has no versions of Nodes that would refuse it.
		if n++; n >= at && thawed.IsZero() && !strings.HasPrefix(op, "cordon") {
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
			if _, err := first.Pass(quiet(t)); err != nil {
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
	for node, times := range cordons {
		if times > 1 {
			t.Errorf("R-RO-05: node %q was cordoned %d times", node, times)
		}
	}
}
