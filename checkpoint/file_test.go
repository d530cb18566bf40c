// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/checkpoint/checkpointtest"
	"github.com/belayproject/belay/internal/durable"
)

// durableDisk is a disk in memory for package durable.
type durableDisk struct{ *checkpointtest.Disk }

type durableFile struct{ *checkpointtest.File }

func (f durableFile) Lock() error { return nil }

func (d durableDisk) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := d.Disk.OpenFile(name, flag, perm)
	return durableFile{f}, err
}

func (d durableDisk) Lstat(name string) (fs.FileInfo, error) { return d.Stat(name) }

func (d durableDisk) LeadsTo(name string, f durable.File) bool {
	there, err := d.Stat(name)
	open, failed := f.(durableFile).Stat()
	return err == nil && failed == nil && there.Sys() == open.Sys()
}

// unsynced is the system without one kind of fsync: what many programs write by hand.
type unsynced struct {
	durableDisk
	file, dir bool
}

type unsyncedFile struct{ durable.File }

func (unsyncedFile) Sync() error { return nil }

func (u unsynced) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := u.durableDisk.OpenFile(name, flag, perm)
	if err == nil && (flag == os.O_RDONLY && u.dir || flag != os.O_RDONLY && u.file) {
		return unsyncedFile{f}, nil
	}
	return f, err
}

func (u unsynced) LeadsTo(name string, f durable.File) bool {
	if n, ok := f.(unsyncedFile); ok {
		f = n.File
	}
	return u.durableDisk.LeadsTo(name, f)
}

// D1 for WriteFile: in every state that a crash may leave, the file holds what was acknowledged or
// what was under way. The same without one fsync, and one that writes in place, are found to lose:
// the harness sees what is missing.
func TestFaultD1WriteFile(t *testing.T) {
	const place = "/etc/file"
	for name, c := range map[string]struct {
		safe  bool
		write func(d *checkpointtest.Disk, content []byte) error
	}{
		"checkpoint": {true, func(d *checkpointtest.Disk, content []byte) error {
			return durable.ReplaceFile(durableDisk{d}, place, content, 0o644)
		}},
		"no fsync of the file": {false, func(d *checkpointtest.Disk, content []byte) error {
			return durable.ReplaceFile(unsynced{durableDisk: durableDisk{d}, file: true}, place, content, 0o644)
		}},
		"no fsync of the directory": {false, func(d *checkpointtest.Disk, content []byte) error {
			return durable.ReplaceFile(unsynced{durableDisk: durableDisk{d}, dir: true}, place, content, 0o644)
		}},
		"in place": {false, func(d *checkpointtest.Disk, content []byte) error {
			f, err := d.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if err != nil {
				return err
			}
			_, err = f.Write(content)
			return errors.Join(err, f.Sync(), f.Close())
		}},
	} {
		lost := 0
		report, err := checkpointtest.Crash{
			Work: func(d *checkpointtest.Disk) error {
				if err := d.Mkdir("/etc", 0o755); err != nil {
					return err
				}
				d.Settle()
				for n := range 20 {
					content := fmt.Sprintf("content %03d", n)
					d.Note("begin 644:" + content)
					if err := c.write(d, []byte(content)); err != nil {
						return err
					}
					d.Note("644:" + content)
				}
				return nil
			},
			Check: func(d *checkpointtest.Disk, noted []any) error {
				got, err := readValue(d, place)
				acked, flight := "", ""
				for _, n := range noted {
					begun, ok := strings.CutPrefix(n.(string), "begin ")
					if flight = begun; !ok {
						acked = begun
					}
				}
				if got != acked && got != flight {
					lost++
				}
				return err
			},
		}.Explore()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("fault D1.WriteFile protocol=%q states=%d lost=%d", name, report.States, lost)
		if c.safe != (lost == 0) {
			t.Errorf("%s: lost in %d states, want safe = %t", name, lost, c.safe)
		}
	}
}

// WriteFile is os.WriteFile that says what an error means.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"one", "two"} {
		if err := checkpoint.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		wantPlain(t, path, 0o644, content)
		wantOnly(t, dir, "file")
	}
	for name, c := range map[string]struct {
		path string
		perm fs.FileMode
		want error
	}{
		"no path":      {"", 0o600, checkpoint.ErrNotWritten},
		"a mode":       {path, fs.ModeSetuid | 0o755, checkpoint.ErrNotWritten},
		"no directory": {filepath.Join(dir, "gone", "file"), 0o600, fs.ErrNotExist},
		"a directory":  {dir, 0o600, checkpoint.ErrNotWritten},
	} {
		err := checkpoint.WriteFile(c.path, []byte("new"), c.perm)
		old := errors.Is(err, checkpoint.ErrNotWritten) && !errors.Is(err, checkpoint.ErrIndeterminate)
		if !old || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v, and ErrNotWritten", name, err, c.want)
		}
	}
	wantPlain(t, path, 0o644, "two")
}

// legacy is the state file of a program that was written without care.
type legacy struct {
	Pods map[string]string `json:"pods"`
	CRC  int               `json:"crc"`
}

func wholeLegacy(content []byte) error { return json.Unmarshal(content, &legacy{}) }

// readContent writes a file and reads it: it gives what was read, and the reason of its damage.
func readContent(t *testing.T, path string, content []byte, check func([]byte) error) (got, reason string) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := checkpoint.ReadFile(path, check)
	if err == nil {
		return string(read), ""
	}
	var corrupt *checkpoint.CorruptError
	if !errors.As(err, &corrupt) || !errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%q: %v, want a CorruptError", content, err)
	}
	return string(read), corrupt.Damage[0].Reason
}

// Each truncation of a legacy file, each tail of zeros, and an empty file is damage with a reason,
// and what was read is there to be looked at. The whole file is read.
func TestReadFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	whole, err := json.Marshal(legacy{Pods: map[string]string{"pod-1": "cpu 1", "pod-2": "cpu 2,3"}, CRC: 7})
	if err != nil {
		t.Fatal(err)
	}
	read := func(content []byte, check func([]byte) error) (string, string) {
		t.Helper()
		return readContent(t, path, content, check)
	}
	for n := range len(whole) {
		want := "content"
		if n == 0 {
			want = "empty"
		}
		if got, reason := read(whole[:n], wholeLegacy); got != string(whole[:n]) || reason != want {
			t.Errorf("cut to %d bytes: %q, reason %q, want them, reason %q", n, got, reason, want)
		}
		zeros := slices.Concat(whole[:n], make([]byte, len(whole)-n))
		for _, check := range []func([]byte) error{wholeLegacy, nil} {
			if got, reason := read(zeros, check); got != string(zeros) || reason != "zeroed" {
				t.Errorf("zero from byte %d on: %q, reason %q, want them, reason zeroed", n, got, reason)
			}
		}
	}
	for _, check := range []func([]byte) error{wholeLegacy, nil} {
		if got, reason := read(whole, check); got != string(whole) || reason != "" {
			t.Errorf("the whole file: %q, reason %q, want it", got, reason)
		}
	}
}

// What is no file to be read is an error of its own, and nothing waits.
func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(unix.Mkfifo(path("pipe"), 0o600), os.WriteFile(path("large"), make([]byte, 4<<20+1), 0o600),
		os.WriteFile(path("file"), []byte("content"), 0o600), os.Symlink(path("file"), path("link")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"none": fs.ErrNotExist, "pipe": checkpoint.ErrUntrusted, "large": checkpoint.ErrTooLarge,
		".": checkpoint.ErrUntrusted,
	} {
		if _, err := checkpoint.ReadFile(path(name), nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if got, err := checkpoint.ReadFile(path("link"), nil); err != nil || string(got) != "content" {
		t.Errorf("a link: %q, %v, want the content behind it", got, err)
	}
}
