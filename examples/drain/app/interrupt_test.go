// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// R-DR-17: an interrupted drain gives every node back as it was found, one that was cordoned before too, evicts nobody afterwards, and
// names who had left.
func TestInterruptGivesBackWhatWasFound(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.app(t, "web", 2)
	w.app(t, "db", 1)
	w.budget(t, "db", 1, 0)
	n2 := w.node(t, "2")
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	n3 := w.node(t, "3")
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), n3, types.MergePatchType, cordon, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	p := w.drain(t, n1, n3, "--max-nodes=2", "--settle=1h", "--holder=drain/jane")
	p.until(t, "BudgetNeverAllows")
	p.until(t, n3+": settling")
	if list := w.pods(t, n1); len(list) == 0 {
		t.Fatal("nobody is left on the node, want the pod of the budget")
	}
	w.heldBy(t, n1, "drain/jane")
	w.heldBy(t, n3, "drain/jane")
	p.interrupt(t)
	p.ends(t, exitInterrupted)
	p.says(t, "Interrupted. Given back as found: "+n1+", "+n3, "2 pods had been evicted, and may still be ending:\n  "+w.namespace+"/web-")
	w.asFound(t, n1, false)
	w.asFound(t, n3, true)
	if got := w.requests(t, w.user)["create pods/eviction"]; got != 3 || strings.Contains(p.out.String(), n2) {
		t.Errorf("got %d requests to evict and a word on %s, want 2 for the web, 1 for the db, and none\n%s", got, n2, p)
	}
}

// R-DR-17: whoever can't wait for that is told what is left behind, and how to mend it.
func TestSecondInterruptEndsAtOnceAndSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	p := w.drain(t, n1, "--holder=drain/jane")
	p.until(t, "Nothing moves until somebody acts")
	if err := w.env.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	resume := func() {
		if err := w.env.APIServer().Resume(); err != nil {
			t.Fatal(err)
		}
	}
	defer resume()
	p.interrupt(t)
	p.until(t, "Once more ends at once")
	p.interrupt(t)
	p.ends(t, exitError)
	line := "drain release " + n1 + " --holder=drain/jane"
	if got := p.errs.String(); !strings.Contains(got, "left behind, cordoned for drain/jane: "+n1) || !strings.Contains(got, line) {
		t.Errorf("got %q, want the node and the line %q", got, line)
	}
	resume()
	release := w.drain(t, strings.Fields(line)[1:]...)
	release.ends(t, exitDone)
	w.asFound(t, n1, false)
}

// Interrupted before the cluster has been seen, nothing has been done.
func TestInterruptAtTheStart(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	if err := w.env.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	p := w.drain(t, n1)
	p.until(t, "Looking at the cluster")
	p.interrupt(t)
	p.ends(t, exitInterrupted)
	if err := w.env.APIServer().Resume(); err != nil {
		t.Fatal(err)
	}
	if got := p.errs.String(); !strings.Contains(got, "interrupted before anything was done") {
		t.Errorf("got %q, want that nothing was done", got)
	}
	w.asFound(t, n1, false)
}
