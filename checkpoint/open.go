// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/belayproject/belay/internal/option"
)

// Open opens the store in a directory, which it makes, durably, where it is not there (0700, as are its parents). It
// takes the lock, removes what a crash left half done, reads and verifies every record, and sets aside what is
// damaged.
//
// Damage is no error: [Options.OnDamage] hears of it, and the streams that have it say so. Nor is a disk that can not
// be written: Open returns a Store that reads. One whose own entry in its parent could not be synced stays one that
// reads, with [ErrNotWritten] from Put and Delete, until it is opened again. Errors match [ErrLocked] (the text names
// the process), [ErrUntrusted] (a parent that everyone may write without the sticky bit, a directory of someone else,
// or one that is open to others and holds other things), or [errors.ErrUnsupported] (a network file system, or not
// Linux).
func Open(dir string, o Options) (*Store, error) {
	return openOn(hostFS(), dir, o)
}

// absolutePath returns the path of a store's directory, which must be named.
func absolutePath(call, dir string) (string, error) {
	check := option.For(call, nil)
	check.Require("dir", dir, "the directory of the store")
	if err := check.Err(); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

func openOn(sys fsys, dir string, o Options) (*Store, error) {
	s, err := newStore(sys, dir, o)
	if err == nil {
		err = s.start()
	}
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.closeFiles())
		}
		return nil, fmt.Errorf("opening the store in %q: %w", dir, err)
	}
	return s, nil
}

func newStore(sys fsys, dir string, o Options) (*Store, error) {
	o, err := o.complete()
	if sys == nil {
		err = errNoHost()
	}
	if err != nil {
		return nil, err
	}
	path, err := absolutePath("checkpoint.Open", dir)
	if err != nil {
		return nil, err
	}
	return &Store{
		sys: sys, o: o, path: path, lock: -1, pause: pauseFor,
		load:  newLoader(sys, o),
		grow:  make(chan struct{}, 1),
		books: books{bytes: account{limit: o.MaxStore}, folders: map[string]*folder{}},
	}, nil
}

// errNoHost refuses: the promises were tested on Linux only, and a rename and an fsync do not mean the same
// everywhere.
func errNoHost() error {
	return fmt.Errorf("a store on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func newLoader(sys fsys, o Options) loader {
	return loader{sys: sys, uid: uint32(os.Geteuid()), machine: o.machine(), limit: o.MaxStore}
}

func (s *Store) start() error {
	fd, err := s.makePath()
	if err != nil {
		return err
	}
	s.books.root = newFolder("", fd, fileID{}, s.sys)
	if err := s.checkRoot(); err != nil {
		return err
	}
	if err := s.books.root.open(); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	return s.recover()
}

// makePath makes the directories that are missing and returns the last one, open. Each is durable before the next is
// made, and so is the deepest one that was there already: a kill may have come before its parent's fsync.
func (s *Store) makePath() (int, error) {
	var missing []string
	at := s.path
	for {
		info, err := s.sys.statPath(at)
		if err == nil && !info.dir {
			return -1, fmt.Errorf("%q is not a directory", at)
		}
		if err == nil {
			break
		}
		if !isGone(err) || at == filepath.Dir(at) {
			return -1, err
		}
		missing = append(missing, filepath.Base(at))
		at = filepath.Dir(at)
	}
	if err := checkParents(s.sys, at, len(missing) > 0); err != nil {
		return -1, err
	}
	if err := syncParent(s.sys, at); err != nil {
		if len(missing) > 0 || !s.wasOpen() {
			s.dropEmpty(at)
			return -1, err
		}
		s.unsure = err // reading is good
	}
	return s.makeBelow(at, missing)
}

// wasOpen tells whether there is a lock file, which Open makes only below an entry that was durable. Without one
// nothing is known of the entry, and once its fsync failed, a second one that succeeds proves nothing.
func (s *Store) wasOpen() bool {
	_, err := s.sys.statPath(filepath.Join(s.path, lockFile))
	return err == nil
}

// dropEmpty removes a directory that an Open may have made and not made durable, so that the next one has to make the
// entry anew. What holds anything, or may not be removed, stays.
func (s *Store) dropEmpty(path string) {
	info, err := s.sys.statPath(path)
	if err != nil || info.uid != s.load.uid || info.perm != permDir {
		return
	}
	if fd, err := s.sys.openPath(filepath.Dir(path)); err == nil {
		_ = s.sys.rmdir(fd, filepath.Base(path))
		s.sys.close(fd)
	}
}

func (s *Store) makeBelow(at string, missing []string) (int, error) {
	fd, err := s.sys.openPath(at)
	for i := len(missing) - 1; i >= 0 && err == nil; i-- {
		var next int
		next, err = s.makeDir(fd, missing[i])
		if err == nil {
			if err = s.sys.sync(fd); err != nil {
				_ = s.sys.rmdir(fd, missing[i]) // the next Open has to make it anew: an fsync that failed is not repeated
			}
		}
		s.sys.close(fd)
		fd = next
	}
	if err != nil && fd >= 0 {
		s.sys.close(fd)
	}
	return fd, err
}

// makeDir makes a directory, with its mode whatever the umask, and opens it. One that is there already is as good.
func (s *Store) makeDir(parent int, dir string) (int, error) {
	err := s.sys.mkdir(parent, dir, permDir)
	if err == nil {
		err = s.sys.chmodAt(parent, dir, permDir)
	}
	if err != nil && !isTaken(err) {
		return -1, fmt.Errorf("directory %q: %w", dir, err)
	}
	fd, _, err := openFolder(s.sys, parent, dir, s.load.uid)
	return fd, err
}

// syncParent makes the entry of a directory durable. A parent that may not be opened was not made by us.
func syncParent(sys fsys, path string) error {
	if path == filepath.Dir(path) {
		return nil
	}
	fd, err := sys.openPath(filepath.Dir(path))
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sys.close(fd)
	if err := sys.sync(fd); err != nil && !isReadOnly(err) {
		return err
	}
	return nil
}

// checkParents refuses a path on which someone else could put another directory in the place of ours: every directory
// above it, and path itself where more is made below it. Where links lead there, the path behind them is checked as
// well.
func checkParents(sys fsys, path string, itself bool) error {
	real, err := sys.resolve(path)
	if err != nil {
		return err
	}
	for _, p := range []string{path, real} {
		if !itself {
			p = filepath.Dir(p)
		}
		for ; ; p = filepath.Dir(p) {
			info, err := sys.statPath(p)
			if err != nil {
				return err
			}
			if info.perm&0o002 != 0 && info.perm&permSticky == 0 {
				return fmt.Errorf("%w: everyone may write %q", ErrUntrusted, p)
			}
			if p == filepath.Dir(p) {
				break
			}
		}
	}
	return nil
}

// checkRoot judges the store's own directory. One that others may enter is closed, if it is empty or a store;
// anything else is somebody's, and a wrong path must not cost them their modes.
func (s *Store) checkRoot() error {
	info, err := s.sys.stat(s.books.root.fd)
	if err != nil {
		return err
	}
	if s.kind, err = s.sys.kindOf(s.books.root.fd); err != nil {
		return err
	}
	if s.kind == storageNetwork {
		return fmt.Errorf("on a network file system: %w", errors.ErrUnsupported)
	}
	if info.uid != s.load.uid {
		return fmt.Errorf("%w: owned by user %d, this is user %d", ErrUntrusted, info.uid, s.load.uid)
	}
	s.books.root.id = info.id
	if info.perm&openToOthers == 0 {
		return nil
	}
	names, err := s.sys.list(s.books.root.fd)
	if err != nil {
		return err
	}
	if _, err := s.sys.statAt(s.books.root.fd, lockFile); err != nil && len(names) > 0 {
		return fmt.Errorf("%w: mode %#o, and it holds other things than a store", ErrUntrusted, info.perm)
	}
	return s.sys.chmod(s.books.root.fd, permDir)
}

// takeLock takes the lock, and says in its file who has it. On a read-only disk the lock file is enough as it is.
func (s *Store) takeLock() error {
	fd, err := s.sys.openAt(s.books.root.fd, lockFile, openLock)
	if isReadOnly(err) || errors.Is(err, os.ErrPermission) {
		fd, err = s.sys.openAt(s.books.root.fd, lockFile, openRead)
		if isGone(err) {
			err = fmt.Errorf("%w: there is no store yet", ErrReadOnly)
		}
	}
	if isTrap(err) {
		err = fmt.Errorf("%w: the lock file: %w", ErrUntrusted, err)
	}
	if err != nil {
		return err
	}
	if err := s.checkLock(fd); err != nil {
		s.sys.close(fd)
		return err
	}
	s.lock = fd
	s.signLock()
	return nil
}

func (s *Store) checkLock(fd int) error {
	info, err := s.sys.stat(fd)
	if err != nil {
		return err
	}
	if err := info.checkFile(s.load.uid); err != nil {
		return fmt.Errorf("%w: the lock file %w", ErrUntrusted, err)
	}
	if err := s.sys.lock(fd); err != nil {
		if isBusy(err) {
			return &lockedError{Dir: s.path, PID: lockHolder(s.sys, fd)}
		}
		return err
	}
	now, err := s.sys.statAt(s.books.root.fd, lockFile)
	if err == nil && now.id != info.id {
		err = fmt.Errorf("%w: the lock file was replaced", ErrMoved)
	}
	return err
}

// signLock is for people: a disk that is full or failing makes the name of the holder unknown, not the lock. The
// descriptor that holds the lock is not one for writing, which would keep the disk from being remounted read-only.
func (s *Store) signLock() {
	if s.sys.chmod(s.lock, permFile) != nil {
		return
	}
	fd, err := s.sys.openAt(s.books.root.fd, lockFile, openWrite)
	if err != nil {
		return
	}
	defer s.sys.close(fd)
	if s.sys.truncate(fd) == nil {
		_, _ = s.sys.writeAt(fd, [][]byte{[]byte(strconv.Itoa(os.Getpid()) + "\n")}, 0)
	}
}

func lockHolder(sys fsys, fd int) int {
	var buf [32]byte
	n, err := sys.readAt(fd, buf[:], 0)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}
