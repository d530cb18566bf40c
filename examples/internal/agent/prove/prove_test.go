// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/prove"
	"github.com/belayproject/belay/internal/testproc"
)

const (
	within = time.Minute // a bound for a busy machine
	canary = "cAnArY-7f3a"
)

// object is a config with an entry.
func object(text string) configsync.Object {
	return configsync.Object{Namespace: "ns", Name: "n", UID: "u", Data: map[string]string{"config": text}}
}

// shell is a program in the language of the shell, which is a real process with a real exit status.
func shell(script string, args ...string) prove.Options {
	return prove.Options{Path: "/bin/sh", Args: append([]string{"-c", script}, args...), Version: "v1", Timeout: within}
}

func program(t *testing.T, o prove.Options) *prove.Program {
	t.Helper()
	p, err := prove.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outcome names what an error of Inspect means to a Syncer.
func outcome(err error) string {
	switch {
	case err == nil:
		return "accepted"
	case errors.Is(err, configsync.ErrUndecided):
		return "undecided"
	}
	return "refused"
}

func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := outcome(err); got != want {
		t.Errorf("%s: %s (%v), want %s", what, got, err, want)
	}
}

// C-21: exit status 0 accepts, one status refuses, and nothing else says anything about the config.
func TestExitStatusIsTheAnswer(t *testing.T) {
	for script, want := range map[string]struct {
		outcome string
		status  int
	}{
		"exit 0":                     {"accepted", 0},
		"cat >/dev/null":             {"accepted", 0},
		"exit 65":                    {"refused", 65},
		"cat; exit 65":               {"refused", 65},
		"exit 1":                     {"undecided", 1},
		"exit 2":                     {"undecided", 2},
		"exit 64":                    {"undecided", 64},
		"exit 66":                    {"undecided", 66},
		"no-such-program":            {"undecided", 127},
		"kill -9 $$":                 {"undecided", -1},
		"kill -TERM $$":              {"undecided", -1},
		"(exit 65); exit 0":          {"accepted", 0},
		"exec /bin/sh -c 'exit 65' ": {"refused", 65},
	} {
		err := program(t, shell(script)).Inspect(t.Context(), "config", object("a: 1"))
		wants(t, script, err, want.outcome)
		var said *prove.Error
		if err != nil && (!errors.As(err, &said) || said.Status != want.status || said.Refused != (want.outcome == "refused") ||
			said.Digest != object("a: 1").Digest() || said.Version != "v1") {
			t.Errorf("%s: error %+v, want status %d", script, said, want.status)
		}
	}
}

// A program that isn't there, can't run, or that somebody else could have changed, holds configs back and refuses none.
func TestProgramThatCantBeTrusted(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte("#!/bin/sh\nexit 65\n"), 0o700), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, path := range []string{filepath.Join(dir, "absent"), dir, write("group", 0o770), write("all", 0o707), write("plain", 0o600)} {
		o := shell("")
		o.Path, o.Args = path, nil
		err := program(t, o).Inspect(t.Context(), "config", object(canary))
		wants(t, path, err, "undecided")
		if !strings.Contains(err.Error(), path) {
			t.Errorf("error %q does not name %q", err, path)
		}
	}
}

// The payload comes by standard input, or by a file for the agent alone that is gone afterwards, whatever lay there before.
func TestProgramGetsThePayload(t *testing.T) {
	dir := t.TempDir()
	copied, files := filepath.Join(dir, "copy"), filepath.Join(dir, "files")
	byFile := shell(`cat "$1" > "$0" && test -z "$(cat)" && ls -l "$1" | grep -q '^-rw-------' `, copied, "--config="+prove.PayloadFile)
	byFile.Args[1] = strings.ReplaceAll(byFile.Args[1], `"$1"`, `"${1#--config=}"`)
	byFile.FileDir = files
	refusing := shell("exit 65", prove.PayloadFile)
	refusing.FileDir = files
	for name, o := range map[string]prove.Options{"standard input": shell(`cat > "$0"`, copied), "a file": byFile, "a file that is refused": refusing} {
		text := strings.Repeat(name+"\x00\n", 50_000) // more than a pipe takes
		if err := os.MkdirAll(files, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(files, "payload"), []byte("left by a killed agent, and far longer"), 0o600); err != nil && o.FileDir != "" {
			t.Fatal(err)
		}
		err := program(t, o).Inspect(t.Context(), "config", object(text))
		if strings.Contains(name, "refused") {
			wants(t, name, err, "refused")
		} else if got, readErr := os.ReadFile(copied); err != nil || readErr != nil || string(got) != text {
			t.Errorf("%s: %v, %v: got %d bytes, want %d", name, err, readErr, len(got), len(text))
		}
		if left, err := filepath.Glob(filepath.Join(files, "*")); o.FileDir != "" && (err != nil || len(left) > 0) {
			t.Errorf("%s: %v, %q is left", name, err, left)
		}
	}
}

// The file lies in no directory that somebody else can look into.
func TestDirectoryOfThePayloadIsPrivate(t *testing.T) {
	base := t.TempDir()
	o := shell("exit 0", prove.PayloadFile)
	o.FileDir = filepath.Join(base, "made")
	wants(t, "a directory that is made", program(t, o).Inspect(t.Context(), "config", object("a")), "accepted")
	if info, err := os.Stat(o.FileDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", info, err)
	}
	open, link := filepath.Join(base, "open"), filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o750), os.Symlink(o.FileDir, link)); err != nil { //nolint:gosec // it is to be refused
		t.Fatal(err)
	}
	for _, dir := range []string{open, link, filepath.Join(base, "no", "parent")} {
		o.FileDir = dir
		wants(t, dir, program(t, o).Inspect(t.Context(), "config", object("a")), "undecided")
	}
}

// Nothing of the agent's environment reaches the program.
func TestEnvironmentIsLocalAndMinimal(t *testing.T) {
	t.Setenv("SECRET_TOKEN", canary)
	file := filepath.Join(t.TempDir(), "env")
	o := shell(`env > "$0"`, file)
	o.Env = []string{"MODE=check"}
	wants(t, "env", program(t, o).Inspect(t.Context(), "config", object("a")), "accepted")
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(got)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "PATH", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_": // the last four are the shell's own
		case "BELAY_CONFIG_DIGEST":
			if value != object("a").Digest() {
				t.Errorf("digest %s, want %s", value, object("a").Digest())
			}
		case "MODE":
			o.Env = nil
		default:
			t.Errorf("the program is told %q", name)
		}
	}
	if o.Env != nil {
		t.Errorf("environment %q, want what the options give", got)
	}
}

// A program that hangs is killed when its time is over, says nothing about the config, and leaves no file.
func TestHangIsKilled(t *testing.T) {
	o := shell("sleep 600; exit 65", prove.PayloadFile)
	o.FileDir, o.Timeout = filepath.Join(t.TempDir(), "files"), 100*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := program(t, o).Inspect(ctx, "config", object(canary))
	wants(t, "a hang", err, "undecided")
	if !strings.Contains(err.Error(), "did not end in time, which is 100ms") {
		t.Errorf("error %v, want one with the time that it had", err)
	}
	if _, err := os.Stat(filepath.Join(o.FileDir, "payload")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the payload is left: %v", err)
	}
}

// What the program has started ends with it, whether it is killed or exits.
func TestGroupEndsWithTheProgram(t *testing.T) {
	for name, end := range map[string]string{"killed": "wait", "exits": "exit 65"} {
		file := filepath.Join(t.TempDir(), "pid")
		o := shell(`sleep 600 & echo $! > "$0.new"; mv "$0.new" "$0"; `+end, file)
		o.ShowOutput = true // the child holds the pipe
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- program(t, o).Inspect(ctx, "config", object("a")) }()
		var pid int
		if err := testproc.Poll(within, func() error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := "refused"
		if name == "killed" {
			cancel()
			want = "undecided"
		}
		wants(t, name, <-done, want)
		cancel()
		if err := testproc.Poll(within, func() error { return testproc.Ended(pid) }); err != nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a program writes is in no error, unless it is said to hold no payload; then it is short, and one line.
func TestErrorsHoldNoOutput(t *testing.T) {
	for _, script := range []string{"cat; exit 65", "cat >&2; exit 1", "cat; kill -9 $$"} {
		o := shell(script)
		text := strings.Repeat("x", 200*prove.MaxShown) + "\n\x1b[31m" + canary + "\xff\n\n"
		err := program(t, o).Inspect(t.Context(), "config", object(text))
		if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "xx") {
			t.Errorf("%s: error %q, want one without output", script, err)
		}
		o.ShowOutput = true
		err = program(t, o).Inspect(t.Context(), "config", object(text))
		var said *prove.Error
		if !errors.As(err, &said) || len(said.Output) > prove.MaxShown || !strings.HasSuffix(said.Output, " ?[31m"+canary+"?") || !strings.Contains(err.Error(), said.Output) {
			t.Errorf("%s: error %q, want it with the end of the output, cleaned", script, err)
		}
	}
}

// What is wrong with the options is said at once, and all of it.
func TestOptionsAreChecked(t *testing.T) {
	_, err := prove.New(prove.Options{Path: "agentd", Args: []string{"--config=" + prove.PayloadFile}, Dir: "x", Timeout: -1, Secret: []byte("short")})
	for _, field := range []string{"Path", "Dir", "Version", "Timeout", "FileDir", "Secret"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+field+" ") {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
	if _, err := prove.New(prove.Options{Path: "/bin/true", Version: "v1"}); err != nil {
		t.Error(err)
	}
}

// C-39: what is judged may be the merged document; a layer that can't be had refuses nothing.
func TestPayloadMayBeMadeOfLayers(t *testing.T) {
	layer := "limit: 1"
	o := shell("grep -q 'limit: 1' || exit 65")
	o.Store = &configsynctest.Disk{}
	o.Payload = func(_ context.Context, key string, o configsync.Object) ([]byte, error) {
		if layer == "" {
			return nil, configsync.ErrUndecided
		}
		return []byte(o.Data[key] + "\n" + layer), nil
	}
	p := program(t, o)
	wants(t, "merged", p.Inspect(t.Context(), "config", object("a")), "accepted")
	layer = "limit: 2"
	wants(t, "another layer", p.Inspect(t.Context(), "config", object("a")), "refused")
	layer = ""
	wants(t, "no layer", p.Inspect(t.Context(), "config", object("a")), "undecided")
	wants(t, "no layer on record", p.Recall(&configsynctest.Disk{}).Inspect(t.Context(), "config", object("a")), "undecided")
}
