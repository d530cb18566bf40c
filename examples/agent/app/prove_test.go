// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/e2e"
)

// A judge is a program that judges configs, and counts how often.
type judge struct {
	t            *testing.T
	program, ran string
	files        string
}

func newJudge(t *testing.T) *judge {
	dir := t.TempDir()
	return &judge{t, filepath.Join(dir, "check"), filepath.Join(dir, "ran"), filepath.Join(dir, "seen")}
}

// appears puts the program in its place, which refuses what has the word.
func (j *judge) appears(word string) {
	j.t.Helper()
	script := fmt.Sprintf("#!/bin/sh\necho >> %s\necho \"$0\" \"$1\" > %s\n! grep -q %s \"$1\" || { cat \"$1\"; exit 65; }\n", j.ran, j.files, word)
	if err := errors.Join(os.WriteFile(j.program+"-new", []byte(script), 0o700), os.Rename(j.program+"-new", j.program)); err != nil {
		j.t.Fatal(err)
	}
}

func (j *judge) runs() int {
	j.t.Helper()
	text, err := os.ReadFile(j.ran)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		j.t.Fatal(err)
	}
	return len(text)
}

// A proven is a node whose configs a program judges.
type proven struct {
	*local
	j     *judge
	flags []string
}

// looks is what a sub-command says with the flags of the agent, its error included.
func (n *proven) looks(t *testing.T, command string, more ...string) string {
	t.Helper()
	out, err := n.Command(t, append(append([]string{command, "--state-dir=" + n.StateDir, "--init-config=" + n.Init}, n.flags...), more...)...)
	if err != nil {
		out += err.Error()
	}
	return out
}

// C-21: a config waits for the program of --prove-command, is adopted once that accepts it, and is never tried where it is refused; no restart,
// and nobody who looks, has the program run again.
func TestAgentProvesAConfig(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	flags := []string{"--prove-command=" + j.program, "--prove-arg={config}", "--prove-version=v1.36.3"}
	n := &proven{newLocal(t, flags...), j, flags}
	p := n.Start(t)
	v1 := n.wants(t, n.Config("maxPods: 12\n"))
	n.waits(t)
	j.appears("canary-2207")
	n.until(t, "the program accepts it", promoted(v1))
	v2 := n.wants(t, n.Config("maxPods: 13 # canary-2207\n"))
	d := n.until(t, "the program refuses the next", rejected(v2, "the program refuses it with exit status 65"))
	if why := promoted(v1)(d); why != "" {
		t.Error(why)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	if n.agree(t, p.Log()); j.runs() != 2 {
		t.Errorf("the program ran %d times, want once for each config", j.runs())
	}
	n.Start(t)
	n.until(t, "the config is used again", promoted(v1))
	if after := j.runs(); after != 2 {
		t.Errorf("the program ran %d times after a restart, want what it was before", after)
	}
	j.wasAsked(n.local)
	n.checks(t)
	if e, err := os.ReadDir(filepath.Join(n.StateDir, ".proof")); err != nil || len(e) != 0 {
		t.Errorf("the directory of the program holds %v (%v), want nothing", e, err)
	}
}

// waits checks a node whose program isn't there.
func (n *proven) waits(t *testing.T) {
	t.Helper()
	d := n.until(t, "a config waits for a program that isn't there", func(d report.Document) string {
		if text := strings.Join(d.Trouble, "\n"); !strings.Contains(text, "the object could not be judged: finding the program") {
			return "nobody is told"
		}
		return ""
	})
	if d.InUse == nil || d.InUse.Digest != "" || len(d.Rejected) != 0 {
		t.Errorf("in use is %+v, rejected %+v, want the local config, and nothing held against the other", d.InUse, d.Rejected)
	}
	says := n.looks(t, "doctor", "--source=directory="+n.dir, "--render="+n.Render, "--unit=")
	if !strings.Contains(says, "proof     PROBLEM") || strings.Contains(says, "settings  PROBLEM") {
		t.Errorf("the doctor says %s, want that the program is missing, and that the flags are right", says)
	}
}

// agree checks what the sub-commands say while no agent runs, after a refusal.
func (n *proven) agree(t *testing.T, log string) {
	t.Helper()
	out := n.looks(t, "explain", "--output=json") + n.looks(t, "status")
	if guard := n.looks(t, "guard", "--render="+n.Render, "--timeout=60s"); !strings.Contains(guard, "using last known good") {
		t.Errorf("the guard says %s, want the last known good config", guard)
	}
	out += n.looks(t, "explain") + log
	if !strings.Contains(out, "the program refuses it with exit status 65") || strings.Contains(out, "canary-2207") {
		t.Errorf("explain, status and log must say why, and show nothing of a config or of what the program writes:\n%s", out)
	}
}

// checks has a config judged without a node.
func (n *proven) checks(t *testing.T) {
	t.Helper()
	refused := filepath.Join(t.TempDir(), "refused.yaml")
	if err := os.WriteFile(refused, []byte(n.Config("maxPods: 14 # canary-2207\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	says, err := n.Command(t, append(append([]string{"check"}, n.flags...), refused)...)
	if err == nil || !strings.Contains(err.Error(), "the program refuses it with exit status 65") || says != "" {
		t.Errorf("check says %q and %v, want the refusal", says, err)
	}
}

// wasAsked checks where the program found the config.
func (j *judge) wasAsked(n *local) {
	j.t.Helper()
	text, err := os.ReadFile(j.files)
	if want := filepath.Join(n.StateDir, ".proof") + string(filepath.Separator); err != nil || !strings.Contains(string(text), want) {
		j.t.Errorf("the program got %q (%v), want a file below %s", text, err, want)
	}
}

// A program that hangs is killed, and the config waits: the child goes on.
func TestAgentKillsAProgramThatHangs(t *testing.T) {
	t.Parallel()
	n := newLocal(t, "--prove-command=/bin/sh", "--prove-arg=-c", "--prove-arg=sleep 600", "--prove-timeout=300ms")
	n.Start(t)
	var before string
	e2e.Eventually(t, soon, "the child runs", func() error {
		if before = fmt.Sprint(n.Children(t)); before == "[]" {
			return errors.New("no child")
		}
		return nil
	})
	n.wants(t, n.Config("maxPods: 12\n"))
	d := n.until(t, "it is told", func(d report.Document) string {
		if text := strings.Join(d.Trouble, "\n"); !strings.Contains(text, "the program was killed: it did not end in time, which is 300ms") {
			return "nobody is told"
		}
		return ""
	})
	if after := fmt.Sprint(n.Children(t)); len(d.Rejected) != 0 || after != before {
		t.Errorf("rejected is %+v, the child was process %s and is %s; want nothing done", d.Rejected, before, after)
	}
}
