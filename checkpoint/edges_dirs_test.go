// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory in the store: of somebody else it is not used; on a read-only disk its mode stays.
func TestDirectoriesInTheStore(t *testing.T) {
	dir := memDir(t)
	s := openStore(t, dir, bare())
	mustPut(t, s, "d/a", "x")
	mustClose(t, s)
	check(t, os.Chmod(filepath.Join(dir, "d"), 0o755))
	spy := newSpy()
	spy.before = failOn("chmod", "d", unix.EROFS)
	s = openSpied(t, spy, dir, bare())
	wantRecord(t, s, "d/a", "x", 1)
	mustClose(t, s)
	s, err := openOn(&elsewhose{}, dir, bare())
	check(t, err)
	_, err = s.Read(t.Context(), "d/a")
	wantError(t, "Read below a directory of somebody else", err, ErrUntrusted)
	mustClose(t, s)
	if names := files(t, dir); !slices.Contains(names, "d") {
		t.Errorf("files: got %q", names)
	}
}

// elsewhose has the second directory that is looked at belong to somebody else.
type elsewhose struct {
	linuxFS
	dirs int
}

func (e *elsewhose) stat(fd int) (fileInfo, error) {
	info, err := e.linuxFS.stat(fd)
	if info.dir {
		if e.dirs++; e.dirs > 1 {
			info.uid++
		}
	}
	return info, err
}
