// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
)

// Modes do not depend on the umask.
// S-CS-06.
func TestModesDoNotDependOnTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o777, 0o022} {
		t.Run(fmt.Sprintf("%03o", mask), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "store")
			old := unix.Umask(mask)
			defer unix.Umask(old)
			o := bare()
			o.Ballast = 4096
			s := openStore(t, dir, o)
			mustPut(t, s, "a", "x")
			mustPut(t, s, "d/b", "x")
			check(t, filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
				check(t, err)
				info, err := d.Info()
				check(t, err)
				want := fs.FileMode(0o600)
				if d.IsDir() {
					want = 0o700
				}
				if got := info.Mode().Perm(); got != want {
					t.Errorf("%s: got mode %#o, want %#o", path, got, want)
				}
				return nil
			}))
		})
	}
}

func TestDirectoryThatIsOpenToOthersIsClosed(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o777))
	s := openStore(t, dir, bare())
	mustPut(t, s, "d/a", "x")
	mustClose(t, s)
	for _, d := range []string{dir, filepath.Join(dir, "d")} {
		check(t, os.Chmod(d, 0o755))
	}
	wantRecord(t, openStore(t, dir, bare()), "d/a", "x", 1)
	for _, d := range []string{dir, filepath.Join(dir, "d")} {
		info, err := os.Stat(d)
		check(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got mode %#o, want 0700", d, info.Mode().Perm())
		}
	}
}

// A wrong path costs nobody his modes.
func TestDirectoryOfSomethingElseIsRefused(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	replace(t, filepath.Join(dir, "somebody's"), nil)
	_, err := Open(dir, bare())
	wantError(t, "Open", err, ErrUntrusted)
	info, err := os.Stat(dir)
	check(t, err)
	if info.Mode().Perm() != 0o755 {
		t.Fatalf("the directory's mode was changed to %#o", info.Mode().Perm())
	}
}

func TestUntrustedPlacesAreRefused(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string) (open string){
		"everyone may write a parent": func(t *testing.T, dir string) string {
			check(t, os.Chmod(dir, 0o777))
			return filepath.Join(dir, "sub", "store")
		},
		"everyone may write the parent behind a link": func(t *testing.T, dir string) string {
			wide := filepath.Join(dir, "wide")
			check(t, os.MkdirAll(filepath.Join(wide, "real"), 0o700))
			check(t, os.Chmod(wide, 0o777))
			check(t, os.Symlink(filepath.Join(wide, "real"), filepath.Join(dir, "link")))
			return filepath.Join(dir, "link", "store")
		},
		"lock file is a link": func(t *testing.T, dir string) string {
			check(t, os.Symlink("elsewhere", filepath.Join(dir, lockFile)))
			return dir
		},
		"lock file has a second name": func(t *testing.T, dir string) string {
			replace(t, filepath.Join(dir, "other"), nil)
			check(t, os.Link(filepath.Join(dir, "other"), filepath.Join(dir, lockFile)))
			return dir
		},
		"lock file is a fifo": func(t *testing.T, dir string) string {
			check(t, unix.Mkfifo(filepath.Join(dir, lockFile), 0o600))
			return dir
		},
		"directory of someone else": func(t *testing.T, dir string) string {
			tier.System(t, tier.Root) // to give a directory away
			check(t, os.Chown(dir, 12345, -1))
			return dir
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			check(t, os.Chmod(dir, 0o700))
			_, err := Open(prepare(t, dir), bare())
			wantError(t, "Open", err, ErrUntrusted)
		})
	}
}

// An attacker who swaps a file for a link, all the time, never has the link followed. What is behind it would verify.
// S-CS-05.
func TestSwappedLinkIsNeverFollowed(t *testing.T) {
	dir := storeOf(t)
	path, aside, planted := place(dir, "a", 3), filepath.Join(dir, "aside"), filepath.Join(dir, "planted")
	h, _, f := decode(content(t, path))
	if f != nil {
		t.Fatal(f.err)
	}
	canary := filepath.Join(t.TempDir(), "canary")
	replace(t, canary, encode(h, []byte("canary")))
	stop, done := make(chan struct{}), make(chan error, 1)
	swaps := 0
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				done <- nil
				return
			default:
				swaps++
				err = errors.Join(os.Symlink(canary, planted), os.Link(path, aside), os.Rename(planted, path), os.Rename(aside, path))
			}
		}
		done <- err
	}()
	r := openReader(t, dir)
	seen := map[string]int{}
	for range 5000 {
		got, err := r.Get(t.Context(), "a")
		check(t, err)
		seen[string(got)]++
	}
	close(stop)
	check(t, <-done)
	if seen["canary"] != 0 || swaps < 100 {
		t.Fatalf("%d swaps: got %v, want no canary", swaps, seen)
	}
	t.Logf("%d swaps, payloads read: %v", swaps, seen)
}

// A directory of streams that is a link leads nowhere, and the rest goes on.
// S-CS-05.
func TestLinkedDirectoryIsNotFollowed(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "store"), t.TempDir()
	mustClose(t, openStore(t, dir, bare()))
	check(t, os.Symlink(other, filepath.Join(dir, "d")))
	s := openStore(t, dir, bare())
	err := s.Put(t.Context(), "d/a", []byte("x"))
	wantError(t, "Put", err, ErrUntrusted)
	wantError(t, "Put", err, ErrNotWritten)
	if got := files(t, other); len(got) != 0 {
		t.Fatalf("files behind the link: got %q, want none", got)
	}
	mustPut(t, s, "a", "x")
}

// D10: a write never goes to a directory that is not the one that was opened.
func TestMovedDirectoryIsNoticed(t *testing.T) {
	moves := map[string]func(t *testing.T, dir string){
		"store moved":    func(t *testing.T, dir string) { check(t, os.Rename(dir, dir+".old")) },
		"store replaced": func(t *testing.T, dir string) { check(t, os.Rename(dir, dir+".old")); check(t, os.Mkdir(dir, 0o700)) },
		"stream directory moved": func(t *testing.T, dir string) {
			check(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
		},
		"stream directory replaced": func(t *testing.T, dir string) {
			check(t, os.Rename(filepath.Join(dir, "d"), dir+".d"))
			check(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
		},
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s := openStore(t, dir, bare())
			mustPut(t, s, "d/a", "x")
			move(t, dir)
			for what, err := range map[string]error{
				"Put": s.Put(t.Context(), "d/a", []byte("y")), "unchanged Put": s.Put(t.Context(), "d/a", []byte("x")),
				"Delete": s.Delete(t.Context(), "d/a"),
			} {
				wantError(t, what, err, ErrMoved)
				wantError(t, what, err, ErrNotWritten)
			}
			wantRecord(t, s, "d/a", "x", 1)
		})
	}
}

func TestStorageIsJudgedByItsKind(t *testing.T) {
	for magic, want := range map[uint32]storage{
		0xef53: storageDurable, 0x58465342: storageDurable, 0x9123683e: storageDurable,
		0x6969: storageNetwork, 0xff534d42: storageNetwork, 0xfe534d42: storageNetwork,
		0x01021994: storageOther, 0x794c7630: storageOther, 0x858458f6: storageOther, 0: storageOther,
	} {
		if got := storageOf(magic); got != want {
			t.Errorf("file system %#x: got %d, want %d", magic, got, want)
		}
	}
	nfs := &kindFS{kind: storageNetwork}
	_, err := openOn(nfs, t.TempDir(), bare())
	wantError(t, "Open on a network file system", err, errors.ErrUnsupported)
	for kind, want := range map[storage]bool{storageDurable: true, storageOther: false} {
		if s := openSpied(t, &kindFS{kind: kind}, t.TempDir(), bare()); s.Durable() != want {
			t.Errorf("Durable on kind %d: got %t, want %t", kind, s.Durable(), want)
		}
	}
}

// kindFS is the kernel, lying about the file system.
type kindFS struct {
	linuxFS
	kind storage
}

func (k *kindFS) kindOf(int) (storage, error) { return k.kind, nil }
