// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/examples/internal/e2e/seen"
)

// R-CS-71: the condition is on the Node before the config is used. The child looks at its Node before it does anything
// else, and finds the condition of the very config that it was given: at the first start, an adoption, each crash, the
// start that goes back, when the config is tried once more, and when it is listed as bad. L-CS-31.
func TestConditionIsThereBeforeTheChild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "announced")
	file := filepath.Join(t.TempDir(), "seen")
	w.Child = append(w.Child, "--kubeconfig="+w.Kubeconfig, "--node-name="+w.Node, "--seen="+file)
	w.Assign(t, w.Node, nil)
	w.Start(t)
	e2e.Eventually(t, soon, "the local config is used", func() error { return w.Uses(t, "") })
	w.says(t, corev1.ConditionTrue, "using current (init)", "current is set to the local default, and an init config was provided")
	starts := func(n int) func() error {
		return func() error {
			lines, err := seen.Read(file)
			if err == nil && len(lines) < n {
				err = fmt.Errorf("the child has seen %d starts", len(lines))
			}
			return err
		}
	}
	e2e.Eventually(t, soon, "the child has looked at its first start", starts(1)) // it is stopped as soon as there is another config
	v1 := w.good(t, "v1")
	crash := w.push(t, "crash", w.Config("featureGates: {NoSuchGate: true}\n"))
	why := fmt.Sprintf("failed to run current (UID: %s), crash loop: 2 unexplained restarts, tolerated: 1", crash.UID)
	w.says(t, corev1.ConditionFalse, fellBack(v1), why)
	w.runs(t, v1)
	e2e.Eventually(t, soon, "the child has looked at its last start", starts(8))

	lines, err := seen.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	crashes := 0
	for i, l := range lines {
		name, problem := judged(l, v1, crash, why, crashes)
		got = append(got, name)
		if name == "crash" {
			crashes++
		}
		if problem != "" {
			t.Errorf("start %d, with %s: the child found ConfigOK %s: %q because %q; %s", i+1, name, l.Status, l.Message, l.Reason, problem)
		}
	}
	if want := "local v1 crash crash v1 crash crash v1"; strings.Join(got, " ") != want {
		t.Errorf("the child was started with %q, want %q", got, want)
	}
}

// judged names the config of a start after that many of the one that crashes, and says what is wrong with the condition
// that it found. A config that crashed is not said to be well before it lives.
func judged(l seen.Line, v1, crash *corev1.ConfigMap, why string, crashes int) (name, problem string) {
	status, reason := string(corev1.ConditionTrue), "all checks passed"
	var message string
	switch {
	case l.Config == v1.Data["kubelet"] && crashes > 0:
		name, status, message, reason = "v1", string(corev1.ConditionFalse), fellBack(v1), why
	case l.Config == v1.Data["kubelet"]:
		name, message = "v1", using(v1)
	case l.Config == crash.Data["kubelet"] && crashes == 0:
		name, message = "crash", using(crash)
	case l.Config == crash.Data["kubelet"]:
		name, message, status, reason = "crash", using(crash), string(corev1.ConditionUnknown), "trying again: "+why
		if crashes == 1 {
			reason = "not healthy: ended: exit status 1: run.go:72] \"command failed\" err=\"unrecognized feature gate NoSuchGate=true\""
		}
	default: // whether the source was asked already is not for this test
		if l.Message != "using current (init)" || l.Reason == "" || l.Status == "" {
			return "local", `want "using current (init)"`
		}
		return "local", ""
	}
	if l.Status != status || l.Message != message || l.Reason != reason {
		problem = fmt.Sprintf("want %s: %q because %q", status, message, reason)
	}
	return name, problem
}
