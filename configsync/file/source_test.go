// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
)

var (
	_ configsync.Source  = (*file.Source)(nil)
	_ configsync.Fetcher = (*file.Source)(nil)
)

// write puts files, given as name and text in turn, into dir.
func write(t *testing.T, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, pairs[i]), []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// R-CS-07, R-CS-14: the files of a directory are an object as a ConfigMap would be, whole.
func TestDirectoryIsAnObject(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kubelet", "maxPods: 1\n", "crashLoopThreshold", "3", ".kubelet.swp", "junk", ".git", "")
	s := &file.Source{Dir: dir}
	spec, err := s.Desired(t.Context())
	must(t, err)
	must(t, spec.Validate())
	got, err := s.Fetch(t.Context(), *spec)
	must(t, err)
	must(t, configsync.CheckObject(*spec, got))
	want := map[string]string{"kubelet": "maxPods: 1\n", "crashLoopThreshold": "3"}
	if !maps.Equal(got.Data, want) || got.Digest() != spec.Digest || !got.Immutable {
		t.Errorf("Fetch = %+v, want an immutable object with %v and digest %s", got, want, spec.Digest)
	}
	again, err := configsync.ParseObject(got.Raw)
	if err != nil || again.Ref("kubelet") != got.Ref("kubelet") {
		t.Errorf("what is checkpointed reads as %+v, %v; want %+v", again, err, got)
	}
}

// Other content is another object, and is not served for the one that was named.
func TestChangedDirectoryIsAnotherObject(t *testing.T) {
	dir := t.TempDir()
	s := &file.Source{Dir: dir}
	write(t, dir, "kubelet", "a: 1\n")
	before, err := s.Desired(t.Context())
	must(t, err)
	write(t, dir, "kubelet", "a: 2\n")
	after, err := s.Desired(t.Context())
	must(t, err)
	if before.UID == after.UID || before.Digest == after.Digest {
		t.Errorf("%+v and %+v are not told apart", before, after)
	}
	if _, err := s.Fetch(t.Context(), *before); !errors.Is(err, configsync.ErrMismatch) {
		t.Errorf("fetching what was there before: %v, want ErrMismatch", err)
	}
	write(t, dir, "kubelet", "a: 1\n")
	if back, err := s.Desired(t.Context()); err != nil || *back != *before {
		t.Errorf("the same content again is %+v, %v; want %+v", back, err, before)
	}
}

// R-CS-27, R-CS-31: no directory is a missing source; an empty one asks for the local config.
func TestMissingAndEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	if spec, err := (&file.Source{Dir: filepath.Join(dir, "none")}).Desired(t.Context()); !errors.Is(err, configsync.ErrMissing) {
		t.Errorf("a missing directory: %+v, %v; want ErrMissing", spec, err)
	}
	write(t, dir, ".hidden", "x")
	if spec, err := (&file.Source{Dir: dir}).Desired(t.Context()); spec != nil || err != nil {
		t.Errorf("an empty directory: %+v, %v; want the local config", spec, err)
	}
	if _, err := (&file.Source{Dir: filepath.Join(dir, ".hidden")}).Desired(t.Context()); !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("a file as directory: %v, want ErrUnreachable", err)
	}
}

const canary = "c4n4ry"

// What can't be a config is invalid; nothing outside the directory is read, nothing is waited for, and no content is told.
func TestDirectoryIsInvalid(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte(canary), 0o600))
	for name, c := range map[string]struct {
		make    func(t *testing.T, dir string)
		problem string
	}{
		"link out": {func(t *testing.T, dir string) { must(t, os.Symlink(outside, filepath.Join(dir, "kubelet"))) }, "leads out"},
		"relative link out": {func(t *testing.T, dir string) {
			rel, err := filepath.Rel(dir, outside)
			must(t, err)
			must(t, os.Symlink(rel, filepath.Join(dir, "kubelet")))
		}, "leads out"},
		"projection out": {func(t *testing.T, dir string) {
			must(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "..data")))
		}, "leads out"},
		"link to itself": {func(t *testing.T, dir string) { must(t, os.Symlink("kubelet", filepath.Join(dir, "kubelet"))) }, "to itself"},
		"pipe":           {func(t *testing.T, dir string) { must(t, syscall.Mkfifo(filepath.Join(dir, "kubelet"), 0o600)) }, "regular file"},
		"directory":      {func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "kubelet"), 0o700)) }, "regular file"},
		"link to a pipe": {func(t *testing.T, dir string) {
			must(t, syscall.Mkfifo(filepath.Join(dir, ".pipe"), 0o600))
			must(t, os.Symlink(".pipe", filepath.Join(dir, "kubelet")))
		}, "regular file"},
		"not UTF-8":      {func(t *testing.T, dir string) { write(t, dir, "kubelet", canary+"\xff") }, "UTF-8"},
		"name is no key": {func(t *testing.T, dir string) { write(t, dir, "kubelet~", canary) }, "must be a key"},
		"too large":      {func(t *testing.T, dir string) { write(t, dir, "a", canary, "kubelet", strings.Repeat("x", 1<<20)) }, "more than 1048576 bytes"},
		"too many": {func(t *testing.T, dir string) {
			for i := range 1001 {
				write(t, dir, fmt.Sprint("k", i), "")
			}
		}, "more than 1000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			spec, err := (&file.Source{Dir: dir}).Desired(t.Context())
			var invalid *configsync.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Desired = %+v, %v; want an InvalidError", spec, err)
			}
			if s := err.Error(); !strings.Contains(s, c.problem) || strings.Contains(s, canary) {
				t.Errorf("error %q, want one with %q and nothing of the content", s, c.problem)
			}
		})
	}
}

// A link that leads nowhere may be half of a change, or a mistake: it is no empty config, and no missing directory.
func TestDanglingLinkIsTrouble(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("nowhere", filepath.Join(dir, "kubelet")))
	spec, err := (&file.Source{Dir: dir}).Desired(t.Context())
	if !errors.Is(err, configsync.ErrUnreachable) || errors.Is(err, configsync.ErrMissing) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Desired = %+v, %v; want ErrUnreachable", spec, err)
	}
}

// project makes dir show version the way a mounted ConfigMap does: files in a directory of their own, a link to it that is replaced
// by one rename, and links to the files. The directory of the version before is removed.
func project(t *testing.T, dir string, version int) {
	t.Helper()
	name := fmt.Sprintf("..v%d", version)
	must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	for _, key := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, name), key, fmt.Sprint(version))
		if err := os.Symlink("..data/"+key, filepath.Join(dir, key)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	must(t, os.Symlink(name, filepath.Join(dir, "..next")))
	must(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", version-1))))
}

// R-CS-09: at no moment are entries of two versions seen together, however fast a mounted ConfigMap changes.
func TestProjectionIsReadAsOneVersion(t *testing.T) {
	dir := t.TempDir()
	project(t, dir, 0)
	s := &file.Source{Dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for version := 1; ctx.Err() == nil; version++ {
			project(t, dir, version)
		}
	})
	seen := map[string]bool{}
	for range 500 {
		got, err := s.Fetch(t.Context(), configsync.Spec{})
		if err != nil {
			if !errors.Is(err, configsync.ErrUnreachable) {
				t.Errorf("while it changes: %v, want nothing but ErrUnreachable", err)
			}
			continue
		}
		if len(got.Data) != 3 || got.Data["a"] != got.Data["b"] || got.Data["b"] != got.Data["c"] {
			t.Fatalf("a mixture was read: %v", got.Data)
		}
		seen[got.Data["a"]] = true
	}
	cancel()
	writer.Wait()
	t.Logf("saw %d versions", len(seen))
	if _, err := s.Fetch(t.Context(), configsync.Spec{}); err != nil {
		t.Errorf("at rest: %v", err)
	}
}

// R-CS-37: a change is noticed at the next look. What changed before the first look is not missed.
func TestWatchNoticesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "kubelet", "1")
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		done := make(chan error, 1)
		go func() { done <- (&file.Source{Dir: dir}).Watch(ctx, func() { calls.Add(1) }) }()
		expect := func(want int32, what string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if calls := calls.Load(); calls != want {
				t.Errorf("%s: %d calls, want %d", what, calls, want)
			}
		}
		expect(1, "at the beginning")
		expect(1, "nothing changed")
		write(t, dir, "kubelet", "2")
		expect(2, "an edit")
		write(t, dir, "other", "")
		expect(3, "another file")
		must(t, os.RemoveAll(dir))
		expect(4, "the directory is gone")
		expect(4, "it is still gone")
		must(t, os.Mkdir(dir, 0o700))
		expect(5, "it is back")
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch = %v, want nil when its context ends", err)
		}
	})
}
