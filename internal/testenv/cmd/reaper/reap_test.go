// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const testID = "0123456789abcdef"

func TestCheckRefusesWhatIsNotTheOwners(t *testing.T) {
	for name, c := range map[string]struct {
		id, dir string
		ok      bool
	}{
		"good":             {testID, "/tmp/belay-" + testID, true},
		"short identifier": {"0123", "/tmp/belay-0123", false},
		"no identifier":    {"", "/tmp/belay-", false},
		"other alphabet":   {strings.Repeat("*", 16), "/tmp/belay-" + strings.Repeat("*", 16), false},
		"relative":         {testID, "belay-" + testID, false},
		"not clean":        {testID, "/tmp/../belay-" + testID, false},
		"another's":        {testID, "/home", false},
		"beneath":          {testID, "/tmp/belay-" + testID + "/x", false},
	} {
		if err := check(c.id, c.dir); (err == nil) != c.ok {
			t.Errorf("%s: check(%q, %q) = %v, want ok %t", name, c.id, c.dir, err, c.ok)
		}
	}
}

func TestMarkMatchesWholeVariables(t *testing.T) {
	for environ, want := range map[string]bool{
		"A=1\x00BELAY_REAP=" + testID + "\x00B=2\x00": true,
		"BELAY_REAP=" + testID:                        true,
		"BELAY_REAP=" + testID + "0\x00":              false,
		"XBELAY_REAP=" + testID + "\x00":              false,
		"A=BELAY_REAP=" + testID + "\x00":             false,
		"":                                            false,
	} {
		if got := marked([]byte(environ), testID); got != want {
			t.Errorf("marked(%q) = %t, want %t", environ, got, want)
		}
	}
}

func TestCgroupMatchesWholeNames(t *testing.T) {
	for cgroups, want := range map[string]bool{
		"4:memory:/belay-" + testID + "/kubepods/x\n":  true,
		"9:name=systemd:/\n0::/belay-" + testID + "\n": true,
		"0::/belay-" + testID + "0/x\n":                false,
		"0::/" + testID + "/x\n":                       false,
		"0::/\n":                                       false,
		"garbage\n":                                    false,
	} {
		if got := inCgroup([]byte(cgroups), testID); got != want {
			t.Errorf("inCgroup(%q) = %t, want %t", cgroups, got, want)
		}
	}
}

func TestMountPointsBeneathADirectory(t *testing.T) {
	table := "22 1 0:20 / /proc rw - proc proc rw\n" +
		"30 22 0:31 / /tmp/d rw shared:1 - tmpfs none rw\n" +
		"31 30 0:32 / /tmp/d/a\\040b rw - tmpfs none rw\n" +
		"32 30 0:33 / /tmp/dd rw - tmpfs none rw\n" +
		"short line\n"
	want := []string{"/tmp/d", "/tmp/d/a b"}
	if got := mountPoints(table, "/tmp/d"); !slices.Equal(got, want) {
		t.Errorf("mountPoints = %q, want %q", got, want)
	}
}

// TestKillAllEndsOnlyWhatIsMarked uses real processes: one marked, one marked by inheritance, one not.
func TestKillAllEndsOnlyWhatIsMarked(t *testing.T) {
	start := func(env, script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append(os.Environ(), env)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	bystander := start("BELAY_REAP=ffffffffffffffff", "sleep 60")
	marked := start("BELAY_REAP="+testID, "setsid sleep 60 & wait")
	done := make(chan error, 1)
	go func() { done <- marked.Wait() }()
	if err := killAll("/proc", testID); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the marked process ended by itself, want it killed")
		}
	case <-time.After(10 * time.Second):
		t.Error("the marked process runs after killAll, want it killed")
	}
	if left, _, err := owned("/proc", testID); err != nil || len(left) > 0 {
		t.Errorf("after killAll processes %v are left (%v)", left, err)
	}
	if left, _, err := owned("/proc", "ffffffffffffffff"); err != nil || !slices.Contains(left, bystander.Process.Pid) {
		t.Errorf("killAll ended a process of another owner: %v are left (%v)", left, err)
	}
}

// A program that is just being started has no environment to see yet, and is not taken for another owner's: it is waited for, but not for ever.
func TestAStartingProgramIsLookedAtAgain(t *testing.T) {
	stat := func(state string, vsize, envEnd int) string {
		return fmt.Sprintf("7 (a) b) %s 1%s %d%s %d 0\n", state, strings.Repeat(" 9", 18), vsize, strings.Repeat(" 9", 27), envEnd)
	}
	for name, c := range map[string]struct {
		stat, environ string
		starting      int
	}{
		"just being started":     {stat("R", 4096, 0), "", 1},
		"without environment":    {stat("S", 4096, 77), "", 0},
		"with another's":         {stat("S", 4096, 77), "BELAY_REAP=ffffffffffffffff\x00", 0},
		"has ended":              {stat("Z", 0, 0), "", 0},
		"a thread of the kernel": {stat("I", 0, 0), "", 0},
		"nothing to see":         {"", "", 0},
	} {
		proc := t.TempDir()
		file := func(file, text string) {
			path := filepath.Join(proc, "99999999", file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		file("stat", c.stat)
		file("environ", c.environ)
		if pids, starting, err := owned(proc, testID); err != nil || len(pids) > 0 || starting != c.starting {
			t.Errorf("%s: owned = %v, %d, %v, want none and %d", name, pids, starting, err, c.starting)
		}
		if err := killAll(proc, testID); err != nil {
			t.Errorf("%s: %v, want that it is not waited for forever", name, err)
		}
	}
}

func TestUndoRefusesOtherPlaces(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Mkdir(victim, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"remove " + victim, "remove /", "remove /etc", "remove /var/lib/kubelet/../../../etc", "sysctl ../../etc/x 1", "rm x",
	} {
		file := filepath.Join(t.TempDir(), "undo")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := undo(file); err == nil {
			t.Errorf("undo accepted %q", line)
		}
	}
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("undo removed what it must not: %v", err)
	}
	if err := undo(filepath.Join(victim, "absent")); err != nil {
		t.Errorf("without an undo file: %v, want nothing to do", err)
	}
}

func TestRemovePlaceKeepsForeignDirectories(t *testing.T) {
	place := t.TempDir()
	foreign := filepath.Join(place, "foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "socket"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removePlace(place); err == nil {
		t.Error("a place with a foreign directory in it was removed without a word")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("the foreign directory is gone: %v", err)
	}
}
