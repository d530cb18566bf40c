// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// unit reads the settings of the shipped unit; a setting that stands twice keeps its last value.
func unit(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "systemd", "belay-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(raw), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if k, v, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			set[k] = v
		}
	}
	return set
}

// R-CS-39: whatever ends the agent, the process manager starts it again, and a stop leaves time for the child.
// L-CS-07.
func TestTheUnitBringsTheAgentBack(t *testing.T) {
	set := unit(t)
	for k, want := range map[string]string{
		"Restart": "always", "StartLimitIntervalSec": "0", "KillMode": "mixed", "Conflicts": "kubelet.service", "StateDirectoryMode": "0700",
	} {
		if set[k] != want {
			t.Errorf("%s=%s, want %s", k, set[k], want)
		}
	}
	var s settings.Run
	s.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	stop, err := time.ParseDuration(set["TimeoutStopSec"])
	if err != nil || stop < s.Grace+stopTimeout {
		t.Errorf("TimeoutStopSec=%s (%v), want more than the default --grace of %s and the record of the stop", set["TimeoutStopSec"], err, s.Grace)
	}
}

// The unit's command line is one that the agent takes, but for files that this machine doesn't have.
func TestTheUnitsCommandLineIsRight(t *testing.T) {
	words := strings.Fields(unit(t)["ExecStart"])
	var s settings.Run
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.AddFlags(f)
	if words[1] != "run" {
		t.Fatalf("ExecStart runs %q, want the run sub-command", words[1])
	}
	if err := f.Parse(words[2:]); err != nil {
		t.Fatal(err)
	}
	s.Child = f.Args()
	if !slices.Contains(s.Child, "--config="+s.Render) {
		t.Errorf("the kubelet is started with %q, want --config=%s: it must read what the agent renders", s.Child, s.Render)
	}
	if dir := "/var/lib/" + unit(t)["StateDirectory"]; s.StateDir != dir {
		t.Errorf("--state-dir=%s, want %s, which systemd makes", s.StateDir, dir)
	}
	s.Child[0], s.InitConfig = "/bin/sh", "/etc"
	if err := s.Validate(); err != nil {
		t.Errorf("the agent refuses it: %v", err)
	}
}

// R-CS-20, C-01: the unit's other commands are ones that the agent takes, on the same files, and none of them can keep the node down.
func TestTheUnitsOtherCommandsAreRight(t *testing.T) {
	set := unit(t)
	var run settings.Run
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	run.AddFlags(f)
	must(t, f.Parse(strings.Fields(set["ExecStart"])[2:]))
	for setting, name := range map[string]string{"ExecStartPre": "guard", "ExecStop": "stopping", "ExecStopPost": "ended"} {
		words := strings.Fields(set[setting])
		if len(words) < 2 || words[0] != "-"+strings.Fields(set["ExecStart"])[0] || words[1] != name {
			t.Errorf("%s=%s, want the agent's %s, after a minus", setting, set[setting], name)
			continue
		}
		var g settings.Guard
		var u settings.Unit
		f := pflag.NewFlagSet(name, pflag.ContinueOnError)
		if name == "guard" {
			g.AddFlags(f)
			must(t, f.Parse(words[2:]))
			if !cmp.Equal(g.Local, run.Local) || g.Render != run.Render {
				t.Errorf("the guard judges by %+v and %q, want what the agent judges by: %+v and %q", g.Local, g.Render, run.Local, run.Render)
			}
			continue
		}
		u.AddFlags(f)
		must(t, f.Parse(words[2:]))
		if err := u.Validate(); err != nil || u.StateDir != run.StateDir {
			t.Errorf("%s=%s: %v, want the agent's state directory %s", setting, set[setting], err, run.StateDir)
		}
	}
}
