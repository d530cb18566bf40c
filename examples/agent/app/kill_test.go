// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
)

// killings is how often the agent is killed while one config is wanted: fewer than its threshold, as nothing explains the
// starts that follow.
const killings = 6

// Whenever the agent is killed with -9, its child goes with it, what the child reads is one whole config, and the next agent comes to
// the right one. R-CS-04, R-CS-19, R-CS-38.
func TestAgentKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "killed")
	w.Flags = append(w.Flags, "--crash-loop-threshold=10", "--default-trial=3s")
	p := w.Start(t)
	known := []string{w.Config("")}
	var last *corev1.ConfigMap
	for round := range 3 {
		last = w.push(t, fmt.Sprintf("kill-v%d", round), w.Config(fmt.Sprintf("maxPods: %d\n", 100+round)))
		known = append(known, last.Data["kubelet"])
		for i := range killings {
			p = w.killAfter(t, p, time.Duration(round*killings+i)*53*time.Millisecond, known)
		}
	}
	e2e.Eventually(t, soon, "the last good config is promoted", func() error { return w.Promoted(t, string(last.UID)) })
	w.runs(t, last)

	bad := w.push(t, "kill-bad", w.Config("featureGates: {ExitSoon: true}\n"))
	known = append(known, bad.Data["kubelet"])
	for i := range killings {
		p = w.killAfter(t, p, time.Duration(i)*211*time.Millisecond, known)
	}
	e2e.Eventually(t, soon, "the crashing config is left", func() error {
		if err := w.hasRejected(t, string(bad.UID)); err != nil {
			return err
		}
		return w.Uses(t, string(last.UID))
	})
	p = w.killAfter(t, p, 0, known)
	e2e.Eventually(t, soon, "a new agent stays off it", func() error { return w.Uses(t, string(last.UID)) })
	w.runs(t, last)
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	w.tidy(t)
}

// killAfter kills the agent after d, checks what is left, and starts it again.
func (w *world) killAfter(t *testing.T, p *e2e.Process, d time.Duration, known []string) *e2e.Process {
	t.Helper()
	e2e.Throughout(t, d, "the agent runs until it is killed", p.Running)
	p.Kill()
	e2e.Eventually(t, 10*time.Second, "the child dies with the agent", func() error { return w.NoChildren(t) })
	got, err := os.ReadFile(w.Render)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err == nil && !slices.Contains(known, string(got)) {
		t.Fatalf("killed after %s, the rendered config is %q, want one of those that were pushed", d, got)
	}
	return w.Start(t)
}

// The kernel doesn't forgive a child that ignores SIGTERM: it is killed after the grace, and the agent's stop was on record.
func TestAgentStopsAStubbornChild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "stubborn")
	w.WriteInit(t, w.Config("featureGates: {Stubborn: true}\n"))
	w.Flags = append(w.Flags, "--grace=700ms")
	p := w.Start(t)
	w.Assign(t, w.Node, nil)
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	w.tidy(t)
}

// A planned stop of the agent says nothing about the config on trial, however often it comes. R-CS-33, R-CS-64.
// L-CS-33.
func TestStopsOfTheAgentCountAgainstNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "stopped")
	w.Flags = append(w.Flags, "--crash-loop-threshold=0", "--default-trial=5s")
	p := w.Start(t)
	v1 := w.push(t, "stopped-v1", w.Config("maxPods: 42\n"))
	e2e.Eventually(t, soon, "v1 is adopted", func() error { return w.Uses(t, string(v1.UID)) })
	for range 4 {
		if code := p.Stop(t); code != 0 {
			t.Fatalf("asked to stop, the agent exits with %d, want 0", code)
		}
		p = w.Start(t)
		e2e.Eventually(t, soon, "v1 is used again", func() error {
			if w.hasRejected(t, string(v1.UID)) == nil {
				return fmt.Errorf("v1 is rejected: %w", e2e.ErrHopeless)
			}
			return w.Uses(t, string(v1.UID))
		})
	}
	e2e.Eventually(t, soon, "v1 is promoted", func() error { return w.Promoted(t, string(v1.UID)) })
}

// A child that can't be started for a reason outside the config says nothing about the config.
func TestAMissingProgramIsNoFaultOfTheConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "missing")
	program := t.TempDir() + "/kubelet"
	if err := os.Link(w.Child[0], program); err != nil {
		raw, err := os.ReadFile(w.Child[0])
		if err == nil {
			err = os.WriteFile(program, raw, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Child[0] = program
	w.Flags = append(w.Flags, "--crash-loop-threshold=1", "--default-trial=1h", "--max-trial=2h")
	p := w.Start(t)
	v1 := w.push(t, "missing-v1", w.Config("maxPods: 42\n"))
	e2e.Eventually(t, soon, "v1 is adopted", func() error { return w.Uses(t, string(v1.UID)) })
	w.runs(t, v1)
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	for _, pid := range w.Children(t) {
		child, err := os.FindProcess(pid)
		if err == nil {
			err = child.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	e2e.Eventually(t, soon, "the agent tries again and again", func() error { return p.Logged("Child can't be started", 5) })
	if err := w.Uses(t, string(v1.UID)); err != nil {
		t.Fatalf("the program is away: %v", err)
	}
	w.says(t, corev1.ConditionUnknown, "using nothing, trying again",
		fmt.Sprintf("the child can't be started: exec: %q: stat %s: no such file or directory", program, program))
	if d, err := w.Status(t); err != nil || d.ConfigOK.Status != "Unknown" {
		t.Errorf("the status sub-command says %+v (%v), want Unknown", d.ConfigOK, err)
	}
	if err := os.Rename(program+".away", program); err != nil {
		t.Fatal(err)
	}
	w.runs(t, v1)
	w.says(t, corev1.ConditionTrue, using(v1), "all checks passed")
}
