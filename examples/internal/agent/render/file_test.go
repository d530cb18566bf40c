// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatalf("Open(%q): %v", path, err)
	}
	return f
}

func write(t *testing.T, f *File, payload string) {
	t.Helper()
	if err := f.Write([]byte(payload)); err != nil {
		t.Fatalf("Write: %v", err)
	}
	got, err := os.ReadFile(f.Path())
	if err != nil || string(got) != payload {
		t.Fatalf("the file holds %q (%v), want %q", got, err, payload)
	}
	info, err := os.Lstat(f.Path())
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file's mode is %v (%v), want -rw-------", info.Mode(), err)
	}
	if names := entries(t, filepath.Dir(f.Path())); !slices.Contains(names, filepath.Base(f.Path())) || len(names) != 1 {
		t.Fatalf("the directory holds %q, want the config alone", names)
	}
}

func TestWriteMakesTheDirectoryAndOnlyTheFile(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "a", "b", "kubelet.conf"))
	write(t, f, "one\r\n# comment\nlist: []\n")
	write(t, f, "two")
	write(t, f, "")
}

func TestTheSameContentIsNotWrittenAgain(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "kubelet.conf"))
	write(t, f, "one")
	before := inode(t, f.Path())
	write(t, f, "one")
	if after := inode(t, f.Path()); after != before {
		t.Errorf("inode %d became %d: the same payload was written again", before, after)
	}
	write(t, f, "eno")
	if after := inode(t, f.Path()); after == before {
		t.Errorf("the inode is still %d: another payload was written in place, so a reader could see half of it", before)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// L-CS-28.
func TestDriftIsRepaired(t *testing.T) {
	spoil := map[string]func(path string) error{
		"edited":   func(p string) error { return os.WriteFile(p, []byte("eno"), 0o600) },
		"longer":   func(p string) error { return os.WriteFile(p, []byte("one more"), 0o600) },
		"readable": func(p string) error { return os.Chmod(p, 0o644) },
		"removed":  os.Remove,
		"a link": func(p string) error {
			return os.Rename(p, p+".real") // then a symbolic link to the same content
		},
	}
	for name, act := range spoil {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := open(t, filepath.Join(dir, "kubelet.conf"))
			write(t, f, "one")
			if err := act(f.Path()); err != nil {
				t.Fatal(err)
			}
			if name == "a link" {
				real := filepath.Join(t.TempDir(), "real")
				if err := os.Rename(f.Path()+".real", real); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(real, f.Path()); err != nil {
					t.Fatal(err)
				}
			}
			write(t, f, "one")
		})
	}
}

func TestOpenRemovesALeftoverAndKeepsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	f := open(t, path)
	write(t, f, "one")
	if strings.HasSuffix(f.temp, ".conf") || filepath.Dir(f.temp) != filepath.Dir(path) {
		t.Fatalf("the temporary name is %q: it must lie beside the file and not end in .conf", f.temp)
	}
	if err := os.WriteFile(f.temp, []byte("half a pay"), 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, path), "one")
}

// Agents before checkpoint.WriteFile had another name for the temporary file.
func TestOpenRemovesTheLeftoverOfAnOlderAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	leftover := filepath.Join(filepath.Dir(path), ".kubelet.conf.belay-tmp")
	if err := os.WriteFile(leftover, []byte("half a pay"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, path), "one")
}

func TestOpenNamesWhatIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                                 "it is a directory; name a file",
		filepath.Join(file, "kubelet.conf"): "not a directory",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) = %v, want an error with %q", path, err, want)
		}
	}
}

// A write that can't be finished leaves the old payload and no sibling.
func TestAFullDiskLeavesTheOldFile(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "kubelet.conf"))
	write(t, f, "one")
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}()
	if err := f.Write(bytes.Repeat([]byte("x"), 2<<20)); err == nil {
		t.Fatal("Write beyond the size limit succeeded")
	}
	write(t, f, "one")
}

const writerEnv = "BELAY_RENDER_WRITER"

// TestMain is the writer that the kill test kills.
func TestMain(m *testing.M) {
	path := os.Getenv(writerEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	f, err := Open(path)
	for i := 0; err == nil; i++ {
		err = f.Write(bytes.Repeat([]byte{'a' + byte(i%26)}, 64<<10))
	}
	os.Stderr.WriteString(err.Error())
	os.Exit(1)
}

// Whenever the writer is killed, the reader finds one whole payload, and the next Open finds at most its own
// leftover. L-CS-39.
func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	write(t, open(t, path), strings.Repeat("z", 64<<10))
	for i := range 25 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := inode(t, path)
		for deadline := time.Now().Add(10 * time.Second); inode(t, path) == first && time.Now().Before(deadline); {
		}
		for range i * 300 { // a different moment of the write each time
			_ = os.Getpid()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		got, err := os.ReadFile(path)
		if err != nil || len(got) != 64<<10 || strings.Trim(string(got), string(got[:1])) != "" {
			t.Fatalf("kill %d: the file holds %d bytes (%v), want one whole payload", i, len(got), err)
		}
		if names := entries(t, filepath.Dir(path)); len(names) > 2 {
			t.Fatalf("kill %d: the directory holds %q, want the file and at most one sibling", i, names)
		}
		open(t, path)
		if names := entries(t, filepath.Dir(path)); len(names) != 1 {
			t.Fatalf("kill %d: after Open the directory holds %q, want the config alone", i, names)
		}
	}
}
