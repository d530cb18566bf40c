// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
)

func using(cm *corev1.ConfigMap) string { return fmt.Sprintf("using current (UID: %s)", cm.UID) }

func fellBack(cm *corev1.ConfigMap) string {
	return fmt.Sprintf("using last known good: (UID: %s)", cm.UID)
}

// The main job on a real API server, with the rights of an agent and no more: the local config, a good one, then every
// kind of bad one, and a good one again. R-CS-04, R-CS-16, R-CS-18, R-CS-20, R-CS-21, R-CS-30, R-CS-39, R-CS-40,
// R-CS-41, R-CS-46, R-CS-55, R-CS-61, R-CS-76, R-CS-77, R-CS-80.
func TestAgentKeepsANodeOnAGoodConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "lifecycle")
	p := w.Start(t)
	w.Assign(t, w.Node, nil)
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")

	v1 := w.good(t, "v1")
	w.says(t, corev1.ConditionTrue, using(v1), "all checks passed")
	pid := w.Children(t)

	for name, config := range map[string]string{
		"undecodable": w.Config("maxPod: 1\n"),
		"invalid":     w.Config("staticPodPath: a/b\n"),
	} {
		bad := w.push(t, name, config)
		what := map[string]string{"undecodable": "load", "invalid": "validate"}[name]
		w.says(t, corev1.ConditionFalse, fellBack(v1), fmt.Sprintf("failed to %s current (UID: %s)", what, bad.UID))
	}
	if got := w.Children(t); fmt.Sprint(got) != fmt.Sprint(pid) {
		t.Errorf("the child was restarted (process %v, was %v) for configs that can't be used", got, pid)
	}

	crash := w.push(t, "crash", w.Config("featureGates: {NoSuchGate: true}\n"))
	w.says(t, corev1.ConditionFalse, fellBack(v1),
		fmt.Sprintf("failed to run current (UID: %s), crash loop: 2 unexplained restarts, tolerated: 1", crash.UID))
	w.runs(t, v1)
	if !strings.Contains(p.Log(), "unrecognized feature gate NoSuchGate=true") {
		t.Error("what the child wrote is not in the agent's output")
	}
	e2e.Eventually(t, soon, "it is listed after v1 lived and it was tried once more", func() error { return w.hasRejected(t, string(crash.UID)) })

	v3 := w.good(t, "v3")
	w.says(t, corev1.ConditionTrue, using(v3), "all checks passed")
	w.rejectedAre(t, "invalid", "undecodable", "crash")
	w.told(t, "ConfigAdopted", "ConfigPromoted", "ConfigRejected", "ConfigRolledBack")

	w.Assign(t, w.Node, nil)
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	w.tidy(t)
}

// told waits until the node's events have all of these reasons.
func (w *world) told(t *testing.T, reasons ...string) {
	t.Helper()
	e2e.Eventually(t, soon, "events tell the story", func() error {
		got, err := w.Told(t, w.Node)
		for _, r := range reasons {
			if err == nil && !slices.Contains(got, r) {
				err = fmt.Errorf("there are events %q, want %q among them", got, r)
			}
		}
		return err
	})
}

// rejectedAre checks the names of what the node reports as rejected, in any order.
func (w *world) rejectedAre(t *testing.T, names ...string) {
	t.Helper()
	nc, err := w.NodeConfig(t, w.Node)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range nc.Status.Rejected {
		got[r.Name] = r.Reason != "" && !r.Time.IsZero()
	}
	for _, n := range names {
		if !got[n] {
			t.Errorf("the NodeConfig's status has %v rejected with reason and time, want %q among them", got, n)
		}
	}
	if len(got) != len(names) {
		t.Errorf("the NodeConfig's status has %v rejected, want %q", got, names)
	}
}

// A config under which the child comes up and then ends badly, and one under which it lives and is not well, are left
// too.
func TestAgentLeavesConfigsThatBreakLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "later")
	w.Start(t)
	v1 := w.good(t, "later-v1")
	late := w.push(t, "later-exit", w.Config("featureGates: {ExitSoon: true}\n"))
	w.says(t, corev1.ConditionFalse, fellBack(v1),
		fmt.Sprintf("failed to run current (UID: %s), crash loop: 2 unexplained restarts, tolerated: 1", late.UID))
	sick := w.ConfigMap(t, "later-sick", w.Config("featureGates: {Sick: true}\n"), map[string]string{"probeDeadline": "2s"})
	w.Assign(t, w.Node, sick)
	w.says(t, corev1.ConditionFalse, fellBack(v1), fmt.Sprintf(
		"failed to run current (UID: %s), required probe %q failed for more than 2s", sick.UID, "http://{healthzBindAddress}:{healthzPort}/healthz"))
	w.runs(t, v1)
}

// R-CS-16, with a child that crashes and no API server for the whole rollback; what happened is reported once the
// server is back. L-CS-26, L-CS-32.
func TestAgentRollsBackWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	env := startAlone(t)
	w := newWorld(t, env, "cutoff")
	p := w.Start(t)
	v1 := w.good(t, "v1")
	bad := w.push(t, "v2", w.Config("featureGates: {ExitSoon: true}\n"))
	e2e.Eventually(t, soon, "v2 is adopted", func() error { return w.Uses(t, string(bad.UID)) })
	if err := env.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, soon, "v2 is left", func() error {
		if err := w.Uses(t, string(v1.UID)); err != nil {
			return err
		}
		return w.hasRejected(t, string(bad.UID))
	})
	w.runs(t, v1)
	e2e.Throughout(t, 3*time.Second, "the node stays on v1 while the server is away", func() error { return w.Uses(t, string(v1.UID)) })
	if err := env.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.says(t, corev1.ConditionFalse, fellBack(v1),
		fmt.Sprintf("failed to run current (UID: %s), crash loop: 2 unexplained restarts, tolerated: 1", bad.UID))
	v3 := w.good(t, "v3")
	w.says(t, corev1.ConditionTrue, using(v3), "all checks passed")

	// A server that is only away takes nobody off a good config, at a start neither.
	if err := env.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	w.Start(t)
	e2e.Eventually(t, soon, "a new agent uses v3 without the server", func() error { return w.Uses(t, string(v3.UID)) })
	w.runs(t, v3)
}

// hasRejected says, as an error, that the agent doesn't list uid as rejected.
func (w *world) hasRejected(t *testing.T, uid string) error {
	t.Helper()
	d, err := w.Status(t)
	if err != nil {
		return err
	}
	for _, r := range d.Rejected {
		if r.UID == uid {
			return nil
		}
	}
	return fmt.Errorf("rejected are %+v, want UID %s among them", d.Rejected, uid)
}
