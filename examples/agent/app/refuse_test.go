// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Where the local config is not good, the agent refuses to start, with a remote config or without, and says why on the
// node. R-CS-52, R-CS-53.
func TestAgentRefusesABadInitConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "refusing")
	good := w.Config("")
	w.WriteInit(t, w.Config("maxPods: many\n"))
	refuse := func() {
		t.Helper()
		p := w.Start(t)
		if code := p.Exit(t, soon); code != 1 {
			t.Errorf("the agent exits with %d, want 1", code)
		}
		if want := `local baseline (init) is undecodable: decoding "kubelet": field "maxPods" has a value of another type`; !strings.Contains(p.Log(), want) {
			t.Errorf("the agent wrote %q, want %q in it", p.Log(), want)
		}
		if err := w.Says(t, w.Node, corev1.ConditionFalse, "using nothing, refusing to start", "local baseline (init) is undecodable"); err != nil {
			t.Error(err)
		}
		if err := w.NoChildren(t); err != nil {
			t.Error(err)
		}
	}
	refuse()
	if _, err := os.Stat(w.Render); !os.IsNotExist(err) {
		t.Errorf("a config was rendered (%v), want none", err)
	}
	w.WriteInit(t, good)
	p := w.Start(t)
	w.good(t, "refusing-v1")
	p.Stop(t)
	w.WriteInit(t, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: many\n")
	refuse()
}

// Two agents never share a state directory.
func TestAgentRefusesAStateDirectoryInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "twice")
	first := w.Start(t)
	w.Assign(t, w.Node, nil)
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")
	second := w.Start(t)
	if code := second.Exit(t, soon); code != 1 || !strings.Contains(second.Log(), "the store is in use by process") {
		t.Errorf("a second agent exits with %d and wrote %q, want 1 and who uses the state directory", code, second.Log())
	}
	if err := first.Running(); err != nil {
		t.Error(err)
	}
}

// R-CS-08: switched off by flags, the agent keeps no state and watches nothing; it still supervises its child.
func TestAgentWithoutDynamicConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "switchedoff")
	w.push(t, "off-v1", w.Config("maxPods: 42\n"))
	w.Flags = append(w.Flags, "--source=none", "--state-dir=")
	p := w.Start(t)
	w.runs(t, &corev1.ConfigMap{Data: map[string]string{"kubelet": w.Config("")}})
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")
	if _, err := os.Stat(w.StateDir); !os.IsNotExist(err) {
		t.Errorf("the agent keeps state (%v), want none", err)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	w.Flags = append(w.Flags, "--source=nodeconfig") // an empty --state-dir means off, whatever the source
	p = w.Start(t)
	w.runs(t, &corev1.ConfigMap{Data: map[string]string{"kubelet": w.Config("")}})
	w.says(t, corev1.ConditionTrue, "using current (init); dynamic config is switched off here: --state-dir is empty",
		"current is set to the local default, and an init config was provided")
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	if err := w.NoChildren(t); err != nil {
		t.Error(err)
	}
}
