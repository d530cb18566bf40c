// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A second run of one user is refused with the first's name and since when, and writes nothing; it goes on where it is
// told to, and the first run ends and says why.
func TestSecondRunIsRefusedAndTakesOver(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	first := w.drain(t, n1)
	first.until(t, "Unmanaged")
	w.heldBy(t, n1, defaultHolder(t))
	second := w.drain(t, n1)
	second.ends(t, exitError)
	second.says(t, "HeldByOtherRun: run ", " has node \""+n1+"\" since ", "--take-over does that")
	if writes := w.requests(t, w.user)["patch nodes"]; writes != 1 {
		t.Errorf("got %d writes of the node, want the one of the first run", writes)
	}
	third := w.drain(t, n1, "--take-over", "--force", "--settle=0s")
	third.ends(t, exitDone)
	if !strings.Contains(third.errs.String(), "takes over from run ") {
		t.Errorf("got no word on the run before it\n%s", third)
	}
	first.ends(t, exitError)
	first.says(t, "Superseded: run ", "has taken the place of run", "has begun maintenance")
	w.heldBy(t, n1, defaultHolder(t))
}

// After kill -9 the same command line goes on, without a flag.
func TestRunAfterAKilledOneGoesOn(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	first := w.drain(t, n1)
	first.until(t, "Unmanaged")
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := w.drain(t, n1, "--force", "--settle=0s", "--release-after")
	second.ends(t, exitDone)
	w.asFound(t, n1, false)
}

// Whether a run has ended is known of one on this machine, and of no other.
func TestRunsThatHaveEnded(t *testing.T) {
	here := readRunID()
	if parsed, ok := parseRunID(here.String()); !ok || parsed != here {
		t.Errorf("got %+v, %v, want %+v", parsed, ok, here)
	}
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	gone, reused, elsewhere, rebooted := here, here, here, here
	gone.pid = cmd.Process.Pid
	reused.start = "0"
	elsewhere.pid, elsewhere.host = gone.pid, "elsewhere.invalid"
	rebooted.pid, rebooted.machine = gone.pid, "00000000"
	for _, c := range []struct {
		id   runID
		want bool
	}{{here, false}, {gone, true}, {reused, true}, {elsewhere, false}, {rebooted, false}} {
		if got := c.id.hasEnded(here); got != c.want {
			t.Errorf("%s: got ended %v, want %v", c.id, got, c.want)
		}
	}
	for _, other := range []string{"", "x", "a/b/c", "a/1/c", "a/1/c-d/e"} {
		if id, ok := parseRunID(other); ok {
			t.Errorf("%q: got %+v, want no ID of this command", other, id)
		}
	}
}
