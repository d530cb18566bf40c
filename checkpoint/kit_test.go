// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bare are options for tests that look at the files: one known machine, no ballast.
func bare() Options { return Options{MachineID: "test machine", Writer: "v1.2.3", Ballast: -1} }

// openStore opens a store and closes it with the test. It waits for nothing between two tries.
func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	return openSpied(t, &linuxFS{}, dir, o)
}

func openSpied(t *testing.T, sys fsys, dir string, o Options) *Store {
	t.Helper()
	s, err := openOn(sys, dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	s.writer.pause = func(ctx context.Context, _ int) error { return ctx.Err() }
	t.Cleanup(func() { mustClose(t, s) })
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustPut(t *testing.T, s *Store, stream, payload string) {
	t.Helper()
	if err := s.Put(t.Context(), stream, []byte(payload)); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

type reads interface {
	Read(context.Context, string) (Record, error)
}

func wantRecord(t *testing.T, s reads, stream, payload string, gen uint64) Record {
	t.Helper()
	rec, err := s.Read(t.Context(), stream)
	if err != nil {
		t.Fatalf("Read(%q): %v, want generation %d", stream, err, gen)
	}
	if !bytes.Equal(rec.Payload, []byte(payload)) || rec.Generation != gen {
		t.Fatalf("Read(%q) = %d bytes of generation %d, want %d bytes of generation %d",
			stream, len(rec.Payload), rec.Generation, len(payload), gen)
	}
	return rec
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want an error that matches %q", what, got, want)
	}
}

// files gives the names in a directory, sorted.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(files(t, dir), func(n string) bool { return n == lockFile })
	if !slices.Equal(got, want) {
		t.Fatalf("files in the store: got %q, want %q", got, want)
	}
}

func wantNoTemps(t *testing.T, dir string) {
	t.Helper()
	for _, n := range files(t, dir) {
		if strings.HasPrefix(n, tempPrefix) {
			t.Fatalf("temporary file %q is still there", n)
		}
	}
}

// replace gives a file new content, in place.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func place(dir, base string, gen uint64) string { return filepath.Join(dir, recordFile(base, gen)) }

func openReader(t *testing.T, dir string) *Reader {
	t.Helper()
	r, err := OpenReader(dir, bare())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// memDir is a directory in memory where there is one: for tests that count calls, not fsyncs.
func memDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "checkpoint-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	return dir
}
