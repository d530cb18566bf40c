// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/process"
)

// An Outcome is what became of a mutant.
type Outcome string

// The outcomes of a mutant. TimedOut counts as killed: the tests do not pass.
const (
	Killed      Outcome = "killed"
	Survived    Outcome = "survived"
	NotCompiled Outcome = "does not compile"
	TimedOut    Outcome = "timed out"
	Equivalent  Outcome = "equivalent"
	Failed      Outcome = "could not be run"
)

// A suite is the tests that run on a mutant.
type suite struct {
	dir   string // of the package of the tests
	run   string // pattern of the tests, or empty for all
	short bool
}

// try builds and runs the tests on a mutant of a package.
func (s suite) try(ctx context.Context, p *pkg, m mutant, limit time.Duration) (Outcome, string) {
	text, err := p.repair(m)
	if errors.Is(err, errNotCompiled) {
		return NotCompiled, firstLine(strings.TrimPrefix(err.Error(), errNotCompiled.Error()+": "))
	} else if err != nil {
		return Failed, err.Error()
	}
	dir, err := os.MkdirTemp("", "mutant-") // the name is short: sockets lie below it
	if err != nil {
		return Failed, err.Error()
	}
	defer func() { _ = os.RemoveAll(dir) }() // a process that outlives the tests may still write
	overlay, err := writeOverlay(dir, filepath.Join(p.Dir, filepath.Base(m.source.path)), text)
	if err != nil {
		return Failed, err.Error()
	}
	program, err := s.build(ctx, dir, overlay)
	if err != nil {
		return NotCompiled, firstLine(strings.TrimPrefix(err.Error(), errNotCompiled.Error()+": "))
	}
	return s.execute(ctx, dir, program, overlay, limit)
}

// writeOverlay writes the file that shows text to the go command in place of the file at path.
func writeOverlay(dir, path, text string) (string, error) {
	broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(broken, []byte(text), 0o600), os.WriteFile(overlay, b, 0o600))
}

// environment makes programs that the tests build the mutant's too.
func environment(dir, overlay string) []string {
	vars := append(os.Environ(), "TMPDIR="+dir, env+"=1")
	if overlay != "" {
		vars = append(vars, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return vars
}

// build compiles the tests, without the race detector.
func (s suite) build(ctx context.Context, dir, overlay string) (string, error) {
	program := filepath.Join(dir, "mutant.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "TMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// execute runs the test program in a process group of its own, which ends with it.
func (s suite) execute(ctx context.Context, dir, program, overlay string, limit time.Duration) (Outcome, string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := []string{"-test.paniconexit0", "-test.failfast", "-test.run=" + s.run}
	if s.short {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(program, args...) // its context ends the whole group
	cmd.Dir, cmd.Env = s.dir, environment(dir, overlay)
	cmd.WaitDelay = 5 * time.Second // a process that outlives the tests may hold their output
	out := &tail{}
	cmd.Stdout, cmd.Stderr = out, out
	group, err := process.Start(cmd)
	if err != nil {
		return Failed, err.Error()
	}
	limitMemory(group.PID())
	defer context.AfterFunc(ctx, func() { group.Signal(os.Kill) })()
	<-group.Done()
	err = group.Err()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return TimedOut, fmt.Sprintf("after %v", limit.Round(time.Second))
	case strings.Contains(out.String(), "no tests to run"):
		return Failed, fmt.Sprintf("no test matches %q", s.run)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return Survived, ""
	case !errors.As(err, &exit):
		return Failed, err.Error()
	}
	return Killed, out.failure()
}

// clean runs the tests on the real source and returns how long they take.
func (s suite) clean(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := s.build(ctx, dir, "")
	if err != nil {
		return 0, fmt.Errorf("the tests do not compile: %w", err)
	}
	start := time.Now()
	outcome, detail := s.execute(ctx, dir, program, "", time.Hour)
	if outcome != Survived {
		return 0, fmt.Errorf("the tests do not pass on the real source: %s %s", outcome, detail)
	}
	return time.Since(start), nil
}

// A tail keeps the end of an output.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 1 << 16
	t.b = append(t.b, b...)
	if extra := len(t.b) - most; extra > 0 {
		t.b = slices.Delete(t.b, 0, extra)
	}
	return len(b), nil
}

func (t *tail) String() string { return string(t.b) }

// failure returns the name of a test that failed, the innermost if there are several.
func (t *tail) failure() string {
	name := "the program crashed"
	for line := range strings.Lines(t.String()) {
		if _, rest, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
		}
	}
	return name
}

func firstLine(text string) string {
	text = strings.TrimSpace(text)
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "# ") {
			return strings.TrimSpace(line)
		}
	}
	return text
}
