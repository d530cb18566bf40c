// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// What is below the root, and in the directory of a machine.
const (
	machinesDir = "machines"
	usedDir     = "used"

	recordFile    = "instance.json"
	lockFile      = "lock"  // held while something is decided
	aliveFile     = "alive" // held by the processes of the machine, as long as one of them is there
	dataDir       = "data"
	filesDir      = "files"
	bootstrapDir  = "bootstrap"
	consoleFile   = "console.log"
	consoleBefore = "console.1.log"
	settingsFile  = "machine.json"
)

// A store has the directories of all machines.
type store struct {
	path     string // of the root, absolute, without links
	machines *os.Root
	used     *os.Root
	step     func(string) // for tests; nil does nothing
}

// at is where a test may end the process.
func (s *store) at(step string) {
	if s.step != nil {
		s.step(step)
	}
}

func openStore(root string) (*store, error) {
	if err := option.CheckRequired(
		"machine/provider/local.New", "Options.Root", root, "the directory of the machines",
	); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(root)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	s := &store{path: path}
	for name, dir := range map[string]**os.Root{machinesDir: &s.machines, usedDir: &s.used} {
		if *dir, err = openDir(filepath.Join(path, name)); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, durable.SyncDir(durable.OS{}, path)
}

// openDir opens a directory, which is made if it is not there.
func openDir(path string) (*os.Root, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenRoot(path)
}

func (s *store) close() {
	for _, dir := range []*os.Root{s.machines, s.used} {
		if dir != nil {
			_ = dir.Close() // nothing was written through it
		}
	}
}

// whole returns an error when the directories are not those that were opened, as after an unmount: what is not found
// then may be there.
func (s *store) whole() error {
	for name, dir := range map[string]*os.Root{machinesDir: s.machines, usedDir: s.used} {
		path := filepath.Join(s.path, name)
		there, err := os.Lstat(path)
		if err == nil {
			var opened fs.FileInfo
			if opened, err = dir.Stat("."); err == nil && !os.SameFile(there, opened) {
				err = errors.New("it is another directory than at the start")
			}
		}
		if err != nil {
			return provider.Errorf(provider.Unavailable, "directory %q: %w", path, err)
		}
	}
	return nil
}

// dir is the path of a machine's directory.
func (s *store) dir(token string) string { return filepath.Join(s.path, machinesDir, token) }

// open opens the directory of a machine. The error is fs.ErrNotExist where there is none.
func (s *store) open(token string) (*os.Root, error) {
	info, err := s.machines.Lstat(token)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is no directory: a machine is never reached through a link", s.dir(token))
	}
	return s.machines.OpenRoot(token)
}

// read reads a record without holding the machine. The error is fs.ErrNotExist where there is none.
func (s *store) read(token string) (record, error) {
	root, err := s.open(token)
	if err != nil {
		return record{}, err
	}
	defer func() { _ = root.Close() }()
	return readRecord(root, token)
}

func readRecord(root *os.Root, token string) (record, error) {
	data, err := root.ReadFile(recordFile)
	if err != nil {
		return record{}, err
	}
	return parse(data, token)
}

// A held is a machine that nobody else decides about until it is let go.
type held struct {
	*os.Root
	record
	token string
	lock  *os.File
	there bool // it has a record
	at    func(step string)
}

// again is how often a lock that is held is tried for.
const again = 5 * time.Millisecond

// hold waits for the machine until ctx ends. With create, its directory is made if it is not there; otherwise the error
// is fs.ErrNotExist.
func (s *store) hold(ctx context.Context, token string, create bool) (*held, error) {
	for {
		if create {
			if err := s.machines.Mkdir(token, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		h, err := s.tryHold(token, create)
		if h != nil || err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
			return h, err
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("machine %q is busy: %w", token, ctx.Err())
		case <-timer.C:
		}
	}
}

// tryHold returns nil and no error while somebody else holds the machine. The lock is made with the directory alone:
// where it is missing there is no record, and who only looks must not keep the directory from being removed.
func (s *store) tryHold(token string, create bool) (*held, error) {
	root, err := s.open(token)
	if err != nil {
		return nil, err
	}
	h := &held{Root: root, token: token, at: s.at}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	if h.lock, err = root.OpenFile(lockFile, flags, 0o600); err != nil {
		h.release()
		return nil, err
	}
	locked, err := flock(h.lock)
	if !locked || err != nil || !s.same(h) {
		h.release()
		return nil, err
	}
	h.record, err = readRecord(root, token)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.release()
		return nil, err
	}
	h.there = err == nil
	return h, nil
}

// same reports whether the lock is still the one that others find: who removes a machine removes its lock too.
func (s *store) same(h *held) bool {
	mine, err := h.lock.Stat()
	if err != nil {
		return false
	}
	there, err := s.machines.Stat(filepath.Join(h.token, lockFile))
	return err == nil && os.SameFile(mine, there)
}

// flock takes the lock of a file, and reports whether it was free.
func flock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("locking %q: %w", f.Name(), err)
		}
	}
}

func (h *held) release() {
	if h.lock != nil {
		_ = h.lock.Close() // frees the lock; nothing was written
	}
	_ = h.Close()
}

// write stores the record. It is on the disk when write returns.
func (h *held) write() error {
	data, err := h.encode()
	if err != nil {
		return err
	}
	h.at("write " + string(h.Phase))
	h.there = true
	err = put(h.Root, recordFile, data, 0o600)
	h.at("wrote " + string(h.Phase))
	return err
}

// put replaces a file as a whole: after a crash there is the old one or the new one.
func put(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return durable.ReplaceFile(durable.InRoot{Root: root}, name, data, mode)
}

// syncDir puts the names in a directory on the disk.
func syncDir(root *os.Root, name string) error {
	return durable.SyncDir(durable.InRoot{Root: root}, name)
}
