// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Mutant is one way to break a package.
type Mutant struct {
	// Name says what is broken.
	Name string
	// File is the source file, relative to the package directory that the test runs in.
	File string
	// Old is the text that New replaces. It must stand in File exactly once.
	Old, New string
	// Run is the pattern of the test that must catch the mutant.
	Run string
}

// env is set in the environment of the tests that run on a mutant, to its number, so that they don't mutate in turn.
const env = "BELAY_MUTANT"

// Running reports whether this process tests a mutant.
func Running() bool { return os.Getenv(env) != "" }

// all, in the environment, makes [Sample] run every mutant.
const all = "BELAY_MUTANTS"

// sampled is one in how many mutants Sample runs otherwise.
const sampled = 20

// isSampled draws by the name, so that of many short tables it is as few as of a long one, and the same ones each time.
func (m Mutant) isSampled() bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Name)) // never fails
	return h.Sum32()%sampled == 0
}

// Sample is [Kill] for tables of slow tests: it runs one mutant in twenty, and checks of the others that they still fit their source.
// With BELAY_MUTANTS=all in the environment, as make mutants sets it, it runs all of them.
func Sample(t *testing.T, mutants []Mutant) {
	t.Helper()
	if Running() {
		return
	}
	var chosen []Mutant
	for _, m := range mutants {
		if m.isSampled() || os.Getenv(all) == "all" {
			chosen = append(chosen, m)
			continue
		}
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if len(chosen) > 0 {
		Kill(t, chosen)
	}
}

// limit bounds one run. A mutant that hangs its test is caught too; on a busy machine no other should come that far.
const limit = 4 * time.Minute

// Kill runs the tests of the package in the current directory on every mutant and fails t for each that is not caught. It makes t
// a parallel test and each mutant one of its own, as many of them wait for a server.
func Kill(t *testing.T, mutants []Mutant) {
	t.Helper()
	if Running() {
		return
	}
	t.Parallel()
	b := newBatch(t, mutants)
	for i, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			program, err := b.program(t.Context(), i, tempDir(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.test(t.Context(), program); err != nil {
				t.Error(err)
			}
		})
	}
}

// tempDir makes a directory for all files of a run, also of one that is ended by force. Its name is short: sockets lie below it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mutant-") //nolint:usetesting // the name that t.TempDir makes is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err) // what outlives the tests for a moment may still write
		}
	})
	return dir
}

// read gives the name and the text of the file, which must be as the mutant expects it.
func (m Mutant) read() (path, text string, err error) {
	path, err = filepath.Abs(m.File)
	if err != nil {
		return "", "", err
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	if n := strings.Count(string(src), m.Old); n != 1 {
		return "", "", fmt.Errorf("%s holds the text to replace %d times, want once: the mutant is out of date", m.File, n)
	}
	return path, string(src), nil
}

// overlay writes the mutant and the file that shows it to the go command.
func (m Mutant) overlay(dir string) (string, error) {
	path, text, err := m.read()
	if err != nil {
		return "", err
	}
	return writeOverlay(dir, map[string]string{path: strings.Replace(text, m.Old, m.New, 1)})
}

// writeOverlay writes files, by the names of those that they replace, and the file that shows them to the go command.
func writeOverlay(dir string, files map[string]string) (string, error) {
	replace := map[string]string{}
	for path, text := range files {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// A program is a mutant's test program, and the environment that makes programs which it builds the mutant's too.
type program struct {
	path string
	env  []string
}

// build compiles the package's tests with what the overlay shows, without the race detector: what it is to catch is in the tests.
func build(ctx context.Context, overlay, dir string) (program, error) {
	p := program{filepath.Join(dir, "mutant.test"), append(os.Environ(), strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", p.path, ".")
	cmd.Env = append(slices.Clone(p.env), "TMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return program{}, fmt.Errorf("the mutant does not compile: %w\n%s", err, out)
	}
	return p, nil
}

// test runs the tests that must catch the mutant, and says, as an error, that they do not.
func (m Mutant) test(ctx context.Context, p program) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// One failure is enough: of a hundred subtests no other is begun.
	cmd := exec.CommandContext(ctx, p.path, "-test.paniconexit0", "-test.failfast", "-test.run="+m.Run)
	cmd.Env = p.env
	cmd.WaitDelay = 10 * time.Second // a server that outlives the tests may hold their output
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case strings.Contains(string(out), "no tests to run"):
		return fmt.Errorf("no test matches %q", m.Run)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%s does not catch: %s (%s)", m.Run, m.Name, m.File)
	case !errors.As(err, &failed):
		return fmt.Errorf("the tests did not run: %w", err)
	}
	return nil
}
