// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

const goldenStore = "testdata/store-v1"

func goldenOptions() Options { return Options{MachineID: "golden machine", Writer: "v1", Ballast: -1} }

// layStore copies the store of the golden files, with the modes that a store has.
func layStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, filepath.WalkDir(goldenStore, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if e.IsDir() {
			return os.MkdirAll(to, permDir)
		}
		return os.WriteFile(to, content(t, path), permFile)
	}))
	check(t, os.Chmod(filepath.Join(dir, "testdata"), permDir))
	return filepath.Join(dir, goldenStore)
}

// A directory as version 1 left it: records in two directories, the mark of a deleted stream, what was set aside, and the mark of
// a Put that was not confirmed. Every version to come reads it so, and goes on with these numbers.
func TestStoreVersion1IsReadAsEver(t *testing.T) {
	dir := layStore(t)
	r, err := OpenReader(dir, goldenOptions())
	check(t, err)
	wantGolden(t, r, 1)
	s := openStore(t, dir, goldenOptions())
	wantGolden(t, s, 2) // confirmed by a fresh generation
	for stream, gen := range map[string]uint64{"current": 4, "checkpoints/gone": 4, "broken": 3, "cloned": 2} {
		mustPut(t, s, stream, "new")
		wantRecord(t, s, stream, "new", gen)
	}
}

func wantGolden(t *testing.T, s reads, unconfirmed uint64) {
	t.Helper()
	wantRecord(t, s, "current", "third", 3)
	wantRecord(t, s, "checkpoints/uid-1", "object\nwith lines\n", 1)
	if rec := wantRecord(t, s, "broken", "whole", 1); len(rec.Damage) != 1 || rec.Damage[0].Reason != reasonDigest || rec.Damage[0].Generation != 2 {
		t.Fatalf("damage of the damaged stream: got %v", rec.Damage)
	}
	_, err := s.Read(t.Context(), "cloned")
	wantError(t, "Read of a stream of another machine", err, ErrForeign)
	_, err = s.Read(t.Context(), "checkpoints/gone")
	wantError(t, "Read of a deleted stream", err, fs.ErrNotExist)
	wantRecord(t, s, "unconfirmed", "perhaps", unconfirmed)
}
