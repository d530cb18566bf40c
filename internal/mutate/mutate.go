// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// env is set in the environment of the tests that run on a mutant, so that they don't mutate in turn.
const env = "BELAY_MUTANT"

// all, in the environment, makes [Sample] run every mutant.
const all = "BELAY_MUTANTS"

// sampled is one in how many mutants Sample runs otherwise.
const sampled = 5

// Sample is [Kill] for a long table: it runs every fifth mutant, from the first on, and checks of the others that they still fit their source.
// With BELAY_MUTANTS=all in the environment, as make mutants sets it, it runs all of them.
func Sample(t *testing.T, mutants []Mutant) {
	t.Helper()
	if os.Getenv(env) != "" {
		return
	}
	var chosen []Mutant
	for i, m := range mutants {
		if i%sampled == 0 || os.Getenv(all) == "all" {
			chosen = append(chosen, m)
			continue
		}
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	Kill(t, chosen)
}

// limit bounds one run. A mutant that hangs its test is caught too.
const limit = 2 * time.Minute

// Kill runs the tests of the package in the current directory on every mutant and fails t for each that is not caught.
func Kill(t *testing.T, mutants []Mutant) {
	t.Helper()
	if os.Getenv(env) != "" {
		return
	}
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			overlay, err := m.overlay(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.test(t.Context(), overlay)
			switch {
			case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
				t.Errorf("the mutant does not compile:\n%s", out)
			case strings.Contains(out, "no tests to run"):
				t.Errorf("no test matches %q", m.Run)
			case err == nil:
				t.Errorf("%s does not catch: %s (%s)", m.Run, m.Name, m.File)
			}
		})
	}
}

// overlay writes the mutant and the file that shows it to the go command.
func (m Mutant) overlay(dir string) (string, error) {
	file, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), m.Old); n != 1 {
		return "", fmt.Errorf("%s holds the text to replace %d times, want once: the mutant is out of date", m.File, n)
	}
	mutated := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(src), m.Old, m.New, 1)), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// test runs the package's tests with the overlay.
func (m Mutant) test(ctx context.Context, overlay string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-run", m.Run, ".")
	// By the environment, so that programs which a test builds are the mutant's too.
	cmd.Env = append(os.Environ(), env+"=1", strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
