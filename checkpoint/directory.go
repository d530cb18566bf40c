// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// directory is the store's own directory as the disk has it. It makes the path durable, judges whether the directory is
// ours, and makes and opens the directories in it.
type directory struct {
	sys    fsys
	path   string // absolute, as given
	uid    uint32 // of this process
	kind   storage
	root   *folder
	unsure error // what the fsync of the directory above said at Open; nil = it is durable
}

// openRoot makes the directory where it is not there, opens it and judges it. What it opened stays open on an error.
func (d *directory) openRoot() error {
	fd, err := d.makePath()
	if err != nil {
		return err
	}
	d.root.setFD(fd)
	if err := d.checkRoot(); err != nil {
		return err
	}
	return d.root.open()
}

// makePath makes the directories that are missing and returns the last one, open. Each is durable before the next is
// made, and so is the deepest one that was there already: a kill may have come before its parent's fsync.
func (d *directory) makePath() (int, error) {
	var missing []string
	at := d.path
	for {
		info, err := d.sys.statPath(at)
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
	if err := checkParents(d.sys, at, len(missing) > 0); err != nil {
		return -1, err
	}
	if err := syncParent(d.sys, at); err != nil {
		if len(missing) > 0 || !d.wasOpen() {
			d.dropEmpty(at)
			return -1, err
		}
		d.unsure = err // reading is good
	}
	return d.makeBelow(at, missing)
}

// wasOpen tells whether there is a lock file, which Open makes only below an entry that was durable. Without one
// nothing is known of the entry, and once its fsync failed, a second one that succeeds proves nothing.
func (d *directory) wasOpen() bool {
	_, err := d.sys.statPath(filepath.Join(d.path, lockFile))
	return err == nil
}

// dropEmpty removes a directory that an Open may have made and not made durable, so that the next one has to make the
// entry anew. What holds anything, or may not be removed, stays.
func (d *directory) dropEmpty(path string) {
	info, err := d.sys.statPath(path)
	if err != nil || info.uid != d.uid || info.perm != permDir {
		return
	}
	if fd, err := d.sys.openPath(filepath.Dir(path)); err == nil {
		_ = d.sys.rmdir(fd, filepath.Base(path))
		d.sys.close(fd)
	}
}

func (d *directory) makeBelow(at string, missing []string) (int, error) {
	fd, err := d.sys.openPath(at)
	for i := len(missing) - 1; i >= 0 && err == nil; i-- {
		var next int
		next, err = d.makeDir(fd, missing[i])
		if err == nil {
			if err = d.sys.sync(fd); err != nil {
				_ = d.sys.rmdir(fd, missing[i]) // the next Open has to make it anew: an fsync that failed is not repeated
			}
		}
		d.sys.close(fd)
		fd = next
	}
	if err != nil && fd >= 0 {
		d.sys.close(fd)
	}
	return fd, err
}

// makeDir makes a directory, with its mode whatever the umask, and opens it. One that is there already is as good.
func (d *directory) makeDir(parent int, dir string) (int, error) {
	err := d.sys.mkdir(parent, dir, permDir)
	if err == nil {
		err = d.sys.chmodAt(parent, dir, permDir)
	}
	if err != nil && !isTaken(err) {
		return -1, fmt.Errorf("directory %q: %w", dir, err)
	}
	fd, _, err := openFolder(d.sys, parent, dir, d.uid)
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
func (d *directory) checkRoot() error {
	info, err := d.sys.stat(d.root.fd)
	if err != nil {
		return err
	}
	if d.kind, err = d.sys.kindOf(d.root.fd); err != nil {
		return err
	}
	if d.kind == storageNetwork {
		return fmt.Errorf("on a network file system: %w", errors.ErrUnsupported)
	}
	if info.uid != d.uid {
		return fmt.Errorf("%w: owned by user %d, this is user %d", ErrUntrusted, info.uid, d.uid)
	}
	d.root.id = info.id
	if info.perm&openToOthers == 0 {
		return nil
	}
	names, err := d.sys.list(d.root.fd)
	if err != nil {
		return err
	}
	if _, err := d.sys.statAt(d.root.fd, lockFile); err != nil && len(names) > 0 {
		return fmt.Errorf("%w: mode %#o, and it holds other things than a store", ErrUntrusted, info.perm)
	}
	return d.sys.chmod(d.root.fd, permDir)
}

// checkReady returns an error where a write would go astray: the directory was moved, or the fsync of its own entry
// failed. That one is not repeated: the system says it once, and a second success would prove nothing.
func (d *directory) checkReady(f *folder) error {
	if err := d.checkUnmoved(f); err != nil {
		return err
	}
	if d.unsure != nil {
		return fmt.Errorf("the entry of the store's directory, until it is opened again: %w", d.unsure)
	}
	return nil
}

// checkUnmoved returns ErrMoved where a path no longer leads to the directory that is open.
func (d *directory) checkUnmoved(f *folder) error {
	info, err := d.sys.statPath(d.path)
	if err == nil && info.id != d.root.id {
		return fmt.Errorf("%w: %q", ErrMoved, d.path)
	}
	if err == nil && f.dir != "" {
		info, err = d.sys.statAt(d.root.fd, f.dir)
		if err == nil && info.id != f.id {
			return fmt.Errorf("%w: %q in %q", ErrMoved, f.dir, d.path)
		}
	}
	if isGone(err) || isTrap(err) {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}

// openStreams opens a directory of streams that is there, and lists it. One that is empty is durable then.
func (d *directory) openStreams(dir string) (*folder, []string, error) {
	fd, info, err := openFolder(d.sys, d.root.fd, dir, d.uid)
	if err != nil {
		return nil, nil, err
	}
	f := newFolder(dir, fd, info.id, d.sys)
	if info.perm&openToOthers != 0 {
		err = d.sys.chmod(fd, permDir)
		if isReadOnly(err) {
			err = nil
		}
	}
	if err == nil {
		err = f.open()
	}
	var names []string
	if err == nil {
		names, err = d.sys.list(fd)
	}
	if err == nil && len(names) == 0 {
		// A process that was killed may have made it and not come to the fsync of its entry; what holds a file had one.
		if err = d.root.barrier.wait(); err != nil {
			_ = d.sys.rmdir(d.root.fd, dir) // it has to be made anew: an fsync that failed is not repeated
		}
	}
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return f, names, nil
}

// truncateFile empties a file, if it is ours. Where the disk refuses, the next Open counts its bytes again.
func (d *directory) truncateFile(dir int, file string) {
	fd, err := d.sys.openAt(dir, file, openWrite)
	if err != nil {
		return
	}
	defer d.sys.close(fd)
	if info, err := d.sys.stat(fd); err == nil && info.checkFile(d.uid) == nil {
		_ = d.sys.truncate(fd)
	}
}

// openFolder opens a directory in the store's own and checks that it is ours.
func openFolder(sys fsys, root int, dir string, uid uint32) (int, fileInfo, error) {
	fd, err := sys.openAt(root, dir, openDir)
	if isTrap(err) {
		err = fmt.Errorf("directory %q: %w: %w", dir, ErrUntrusted, err)
	}
	if err != nil {
		return -1, fileInfo{}, err
	}
	info, err := sys.stat(fd)
	if err == nil && info.uid != uid {
		err = fmt.Errorf("directory %q: %w: has another owner", dir, ErrUntrusted)
	}
	if err != nil {
		sys.close(fd)
		return -1, fileInfo{}, err
	}
	return fd, info, nil
}

// storeLock is the lock file of a store. One process holds it for as long as the store is open.
type storeLock struct {
	dir *directory
	fd  int // of the lock file; -1 = not held
}

// takeLock takes the lock, and says in its file who has it. On a read-only disk the lock file is enough as it is.
func (l *storeLock) takeLock() error {
	fd, err := l.dir.sys.openAt(l.dir.root.fd, lockFile, openLock)
	if isReadOnly(err) || errors.Is(err, os.ErrPermission) {
		fd, err = l.dir.sys.openAt(l.dir.root.fd, lockFile, openRead)
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
	if err := l.checkLock(fd); err != nil {
		l.dir.sys.close(fd)
		return err
	}
	l.fd = fd
	l.signLock()
	return nil
}

func (l *storeLock) checkLock(fd int) error {
	info, err := l.dir.sys.stat(fd)
	if err != nil {
		return err
	}
	if err := info.checkFile(l.dir.uid); err != nil {
		return fmt.Errorf("%w: the lock file %w", ErrUntrusted, err)
	}
	if err := l.dir.sys.lock(fd); err != nil {
		if isBusy(err) {
			return &lockedError{Dir: l.dir.path, PID: lockHolder(l.dir.sys, fd)}
		}
		return err
	}
	now, err := l.dir.sys.statAt(l.dir.root.fd, lockFile)
	if err == nil && now.id != info.id {
		err = fmt.Errorf("%w: the lock file was replaced", ErrMoved)
	}
	return err
}

// signLock is for people: a disk that is full or failing makes the name of the holder unknown, not the lock. The
// descriptor that holds the lock is not one for writing, which would keep the disk from being remounted read-only.
func (l *storeLock) signLock() {
	if l.dir.sys.chmod(l.fd, permFile) != nil {
		return
	}
	fd, err := l.dir.sys.openAt(l.dir.root.fd, lockFile, openWrite)
	if err != nil {
		return
	}
	defer l.dir.sys.close(fd)
	if l.dir.sys.truncate(fd) == nil {
		_, _ = l.dir.sys.writeAt(fd, [][]byte{[]byte(strconv.Itoa(os.Getpid()) + "\n")}, 0)
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

// releaseLock gives the lock up, if it is held.
func (l *storeLock) releaseLock() error {
	if l.fd < 0 {
		return nil
	}
	err := l.dir.sys.unlock(l.fd)
	l.dir.sys.close(l.fd)
	return err
}
