// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/lkg"
)

// story is a node's life: a good config, one that crashes, one that is invalid, a good one.
func story(n *node) {
	n.push("v1", "good-1", "threshold", "3")
	n.wait(12 * time.Minute)
	n.push("v2", "crash-2", "threshold", "1")
	n.wait(2 * time.Minute)
	n.push("v3", "invalid-3")
	n.wait(2 * time.Minute)
	n.push("v4", "good-4", "threshold", "3") // the kills of this test are unexplained ends
	n.wait(12 * time.Minute)
}

// R-CS-16, R-CS-17, R-CS-38: a kill at any write, with the server up or down afterwards, leaves a node that starts on a
// config that passed its checks and that ends where the source wants it.
// L-CS-27, L-CS-30, L-CS-37.
func TestKillAtEveryWrite(t *testing.T) {
	total := 0
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		story(n)
		total = n.disk.Writes()
		n.stop()
	})
	if total < 30 {
		t.Fatalf("the story makes %d writes; fewer than 30 prove little", total)
	}
	for k := 0; k < total; k += raceshare.Step(t) {
		for _, down := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { killedAt(t, k, down) })
		}
	}
	t.Logf("killed at one in %d of %d writes, twice", raceshare.Step(t), total)
}

func killedAt(t *testing.T, k int, down bool) {
	n := newNode(t)
	n.disk.CutAfter(k, func() { n.kill() })
	n.start()
	story(n)
	n.stop()
	n.disk = n.disk.Clone()
	n.server.Down(down)
	a := n.bootstrap()
	if !strings.HasPrefix(a.Config, "good") && !strings.HasPrefix(a.Config, "crash") {
		t.Errorf("killed before write %d: the next start uses %q, which never passed a check", k+1, a.Config)
	}
	n.start()
	defer func() { n.stop() }()
	n.wait(5 * time.Minute)
	for _, r := range n.child.Starts() {
		if o := n.server.Object("kube-system", "v3"); r.UID == o.UID {
			t.Errorf("killed before write %d: the invalid config was started", k+1)
		}
	}
	n.server.Down(false)
	n.wait(25 * time.Minute)
	st := n.syncer.Status()
	if want := n.server.Object("kube-system", "v4").UID; st.Active.UID != want || st.LastKnownGood.UID != want {
		t.Errorf("killed before write %d: the node ends on %+v, want v4 in use and good", k+1, st)
	}
	if st.Condition != (lkg.Condition{Status: lkg.StatusTrue, Reason: "all checks passed", Message: "using current (UID: " + st.Active.UID + ")"}) {
		t.Errorf("killed before write %d: the node ends with condition %+v", k+1, st.Condition)
	}
}

// bootstrap is one start of a process that dies at once.
func (n *node) bootstrap() configsync.Active[string] {
	n.t.Helper()
	s, err := configsync.New(n.t.Context(), n.options2())
	if err != nil {
		n.t.Fatal(err)
	}
	a, err := s.Bootstrap(n.t.Context(), lkg.Exit{Kind: lkg.ExitClean})
	if err != nil {
		n.t.Errorf("Bootstrap: %v", err)
	}
	return a
}

// R-CS-38: checkpoint, then current, then the marker, then the restart. R-CS-34: a second pass writes nothing.
func TestWriteOrderOfAdoption(t *testing.T) {
	onPromptNode(t, func(n *node) {
		n.wait(time.Minute)
		before := len(n.disk.Log())
		o := n.push("v1", "good-1")
		n.wait(500 * time.Millisecond)
		got := n.disk.Log()[before:]
		want := []string{"checkpoints/" + o.UID, "current", "planned-restart"}
		at := 0
		for _, s := range got {
			if at < len(want) && s == want[at] {
				at++
			}
		}
		if at != len(want) {
			t.Errorf("writes of an adoption %q, want %q in this order", got, want)
		}
		n.wait(3 * time.Second)
		before = len(n.disk.Log())
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
		n.wait(3 * time.Second)
		if more := n.disk.Log()[before:]; len(more) != 0 {
			t.Errorf("naming the same config again wrote %q, want nothing", more)
		}
	})
}

// R-CS-17: the good config has a copy of its own, and pruning never takes it.
// L-CS-26, L-CS-30.
func TestGoodConfigOutlivesItsCheckpoint(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		n.push("v2", "crash-2")
		n.wait(time.Minute)
		n.push("v3", "crash-3")
		n.wait(time.Minute)
		n.stop()
		n.disk.Corrupt("checkpoints/" + v1.UID)
		n.server.Down(true)
		n.start()
		n.runs(v1, "no one damaged file takes both the checkpoint and the good copy")
		kept, err := n.disk.List(n.t.Context(), "checkpoints")
		if err != nil || len(kept) > 3 {
			t.Errorf("checkpoints %q, %v; want only what the records name", kept, err)
		}
	})
}
