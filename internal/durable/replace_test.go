// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func requireNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantFile checks the content and the mode of a file, and that nothing is beside it.
func wantFile(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	requireNil(t, err)
	info, err := os.Lstat(path)
	requireNil(t, err)
	if string(got) != content || info.Mode() != mode {
		t.Errorf("the file is %v %q, want %v %q", info.Mode(), got, mode, content)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	requireNil(t, err)
	if len(names) != 1 {
		t.Errorf("beside the file there are %v, want nothing", names)
	}
}

// What is at the path, and at the temporary one, does not matter.
func TestReplaceWhateverIsThere(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	requireNil(t, os.WriteFile(elsewhere, []byte("of others"), 0o600))
	plant := map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(p string) error { return os.WriteFile(p, []byte("before, and longer"), 0o400) },
		"a link":  func(p string) error { return os.Symlink(elsewhere, p) },
		"a pipe":  func(p string) error { return unix.Mkfifo(p, 0o600) },
	}
	for name, act := range plant {
		for _, at := range []string{"file", TempName("file")} {
			t.Run(name+" at "+at, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "file")
				requireNil(t, act(filepath.Join(dir, at)))
				requireNil(t, ReplaceFile(OS{}, path, []byte("new"), 0o640))
				wantFile(t, path, "new", 0o640)
				root, err := os.OpenRoot(dir)
				requireNil(t, err)
				defer root.Close()
				requireNil(t, act(filepath.Join(dir, TempName("file"))))
				requireNil(t, ReplaceFile(InRoot{root}, "file", []byte("newer"), 0o604))
				wantFile(t, path, "newer", 0o604)
			})
		}
	}
	if got, err := os.ReadFile(elsewhere); err != nil || string(got) != "of others" {
		t.Errorf("a file behind a link is %q (%v), want it untouched", got, err)
	}
}

// Many writers of one file: each has its way, the last one stays, whole.
func TestReplaceByManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if err := ReplaceFile(OS{}, path, []byte(strings.Repeat(fmt.Sprint(i), 5000)), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	requireNil(t, err)
	wantFile(t, path, strings.Repeat(string(got[:1]), 5000), 0o600)
}

// failing is the system with one call that fails.
type failing struct {
	OS
	fail string
}

type failingFile struct {
	File
	fail string
}

var errDisk = syscall.EIO

func (s failing) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := s.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if flag == os.O_RDONLY && s.fail == "sync of the directory" {
		return failingFile{f, "sync"}, nil
	}
	if flag != os.O_RDONLY {
		return failingFile{f, s.fail}, nil
	}
	return f, nil
}

func (s failing) Rename(from, to string) error {
	if s.fail == "rename" {
		return errDisk
	}
	return s.OS.Rename(from, to)
}

func (s failing) LeadsTo(name string, f File) bool { return s.OS.LeadsTo(name, f.(failingFile).File) }

func (f failingFile) Write(p []byte) (int, error) {
	if f.fail == "write" {
		return 0, errDisk
	}
	return f.File.Write(p)
}

func (f failingFile) Sync() error {
	if f.fail == "sync" {
		return errDisk
	}
	return f.File.Sync()
}

func (f failingFile) Chmod(mode fs.FileMode) error {
	if f.fail == "chmod" {
		return errDisk
	}
	return f.File.Chmod(mode)
}

// Whatever fails, the file is what it was, and nothing is left; only after the rename is it the new
// one, and in doubt.
func TestReplaceThatFails(t *testing.T) {
	for _, fail := range []string{"chmod", "write", "sync", "rename", "sync of the directory"} {
		path := filepath.Join(t.TempDir(), "file")
		requireNil(t, os.WriteFile(path, []byte("old"), 0o600))
		err := ReplaceFile(failing{fail: fail}, path, []byte("new"), 0o600)
		doubt := fail == "sync of the directory"
		if !errors.Is(err, errDisk) || errors.Is(err, ErrUnconfirmed) != doubt {
			t.Errorf("%s fails: %v, want EIO, in doubt = %t", fail, err, doubt)
		}
		content := map[bool]string{false: "old", true: "new"}[doubt]
		wantFile(t, path, content, 0o600)
	}
}

func TestRemoveIsNoErrorTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	requireNil(t, ReplaceFile(OS{}, path, nil, 0o600))
	requireNil(t, Remove(OS{}, path))
	requireNil(t, Remove(OS{}, path))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Remove: %v, want no file", err)
	}
	if err := Remove(OS{}, filepath.Join(path, "below")); err == nil {
		t.Error("Remove below what is not there is nil")
	}
}

// hastyFS waits for a lock for a moment only.
type hastyFS struct{ OS }

func (h hastyFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := h.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return hastyFile{f.(systemFile)}, nil
}

func (h hastyFS) LeadsTo(name string, f File) bool {
	return h.OS.LeadsTo(name, f.(hastyFile).systemFile)
}

type hastyFile struct{ systemFile }

func (f hastyFile) Lock() error { return lockFile(f.File, 20*time.Millisecond) }

// Who holds the temporary file for ever, such as a process that was stopped, blocks no writer for ever. The error names
// the file.
func TestReplaceDoesNotWaitForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	temp := filepath.Join(filepath.Dir(path), TempName("file"))
	requireNil(t, os.WriteFile(path, []byte("old"), 0o600))
	held, err := os.Create(temp)
	requireNil(t, err)
	requireNil(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	over := make(chan error)
	go func() { over <- ReplaceFile(hastyFS{}, path, []byte("new"), 0o600) }()
	select {
	case err = <-over:
	case <-time.After(10 * time.Second):
		t.Error("it still waits")
		requireNil(t, held.Close())
		err = <-over
	}
	if !errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, ErrUnconfirmed) || !strings.Contains(err.Error(), temp) {
		t.Errorf("held by another process: %v, want EWOULDBLOCK and the name of %q", err, temp)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the file is %q (%v), want what it was", got, err)
	}
	_ = held.Close()
	requireNil(t, ReplaceFile(OS{}, path, []byte("new"), 0o600))
	wantFile(t, path, "new", 0o600)
}

// Names as long as the system takes work.
func TestReplaceALongName(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	requireNil(t, ReplaceFile(OS{}, path, []byte("new"), 0o600))
	wantFile(t, path, "new", 0o600)
}
