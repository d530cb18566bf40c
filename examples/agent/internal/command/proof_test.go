// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// Guard, explain and check go by the same program. A config on trial whose answer is not known is passed over and not held as bad, explain runs
// nothing, and what was answered is not asked again.
func TestTheProgramIsAskedAlike(t *testing.T) {
	h := newUnitHost(t)
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	flags := []string{"--init-config=" + h.init, "--prove-command=/bin/sh", "--prove-arg=-c"}
	runs := func() int {
		text, err := os.ReadFile(ran)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return len(text)
	}
	for i, step := range []struct {
		exits, explains, config string
		runs                    int
	}{
		{"1", "no answer is on record yet", local0, 1},
		{"0", "no answer is on record yet", good, 2},
		{"0", `"role": "current"`, good, 2}, // another start
		{"65", "no answer is on record yet", local0, 3},
	} {
		script := append(flags, "--prove-arg=echo >> "+ran+"; exit "+step.exits)
		says, err := execute(t, Explain(settings.Parts{}), append(script, "--state-dir="+h.state, "--output=json")...)
		h.must(err)
		if !strings.Contains(says, step.explains) || strings.Contains(says, `"rejected"`) {
			t.Errorf("step %d: explain says %s, want %q, and nothing rejected", i, says, step.explains)
		}
		h.start += "i"
		t.Setenv("INVOCATION_ID", h.start)
		t.Setenv("MAINPID", "")
		says, err = execute(t, Guard(settings.Parts{}), append(script, "--state-dir="+h.state, "--render="+h.render)...)
		h.must(err)
		text, err := os.ReadFile(h.render)
		h.must(err)
		if string(text) != step.config || runs() != step.runs {
			t.Errorf("step %d: in place is %q after %d runs, and the guard says %s; want %q after %d", i, text, runs(), says, step.config, step.runs)
		}
		h.stops()
	}
	refuses := append(flags, "--prove-arg=echo >> "+ran+"; exit 65")
	says, err := execute(t, Explain(settings.Parts{}), append(refuses, "--state-dir="+h.state)...)
	if err != nil || !strings.Contains(says, "the program refuses it with exit status 65") {
		t.Errorf("explain says %s (%v), want the refusal", says, err)
	}
	if says, err := execute(t, Check(settings.Parts{}), append(refuses, file(t, good))...); err == nil || !strings.Contains(err.Error(), "the program refuses it with exit status 65") || says != "" {
		t.Errorf("check says %s and %v, want the refusal", says, err)
	}
	if _, err := execute(t, Check(settings.Parts{}), append(refuses, "--init", file(t, good))...); err != nil || runs() != 4 {
		t.Errorf("check of an init config: %v after %d runs, want nil: it is nobody's to prove", err, runs())
	}
}
