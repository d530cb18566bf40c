// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// hostFS returns the file system of this machine, where the protocol is known to hold on this kind of system, and nil
// elsewhere.
func hostFS() fsys { return &linuxFS{} }

// linuxFS is the kernel. The flags remember what an old kernel, or a filter, does not know.
type linuxFS struct {
	linuxStats

	noOpenat2   atomic.Bool
	noRenameat2 atomic.Bool

	openat2 func(dir int, name string, how *unix.OpenHow) (int, error) // nil = the kernel's
}

// openNonblock keeps opening a pipe from waiting for its other end.
const openNonblock = unix.O_NONBLOCK

const openAlways = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

func flagsOf(how openHow) (flags int, mode uint32) {
	switch how {
	case openDir:
		return unix.O_RDONLY | unix.O_DIRECTORY | openAlways, 0
	case openNew:
		return unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | openAlways, permFile
	case openLock:
		return unix.O_RDONLY | unix.O_CREAT | openAlways, permFile
	case openWrite:
		return unix.O_WRONLY | openAlways, 0
	default:
		return unix.O_RDONLY | openAlways, 0
	}
}

func (l *linuxFS) openAt(dir int, name string, how openHow) (int, error) {
	flags, mode := flagsOf(how)
	if l.noOpenat2.Load() {
		return openPlain(dir, name, flags, mode)
	}
	h := unix.OpenHow{
		Flags: uint64(flags), Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	call := l.openat2
	if call == nil {
		call = unix.Openat2
	}
	for {
		fd, err := call(dir, name, &h)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
			return l.openDowngraded(dir, name, flags, mode)
		case err != nil:
			return -1, fmt.Errorf("opening %q: %w", name, err)
		default:
			return fd, nil
		}
	}
}

// openDowngraded opens without openat2, which the kernel does not have or a filter does not let through, from now on.
func (l *linuxFS) openDowngraded(dir int, name string, flags int, mode uint32) (int, error) {
	fd, err := openPlain(dir, name, flags, mode)
	if err == nil {
		l.noOpenat2.Store(true)
	}
	return fd, err
}

// openPlain is as safe for a name without a slash, except for a file system mounted on the entry itself.
func openPlain(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, mode)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, fmt.Errorf("opening %q: %w", name, err)
		}
	}
}

func (l *linuxFS) openPath(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, fmt.Errorf("opening directory %q: %w", path, err)
		}
	}
}

// close is not repeated after EINTR: the descriptor is gone by then.
func (l *linuxFS) close(fd int) error { return named("closing", unix.Close(fd)) }

func (l *linuxFS) writeAt(fd int, bufs [][]byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev(fd, bufs, off)
		if err != unix.EINTR {
			return max(n, 0), named("writing", err)
		}
	}
}

// hurry leaves the first page alone, as it is written once more. It waits for nothing, so it takes no error away from
// fsync.
func (l *linuxFS) hurry(fd int) error {
	const page = 4096
	err := unix.SyncFileRange(fd, page, 0, unix.SYNC_FILE_RANGE_WRITE)
	if err == unix.ENOSYS || err == unix.EINVAL || err == unix.ESPIPE || err == unix.EPERM {
		return nil // not known here
	}
	return named("starting to write back", err)
}

func (l *linuxFS) truncate(fd int) error {
	return named("truncating", again(func() error { return unix.Ftruncate(fd, 0) }))
}

func (l *linuxFS) allocate(fd int, size int64) error {
	return named("allocating", again(func() error { return unix.Fallocate(fd, 0, 0, size) }))
}

func (l *linuxFS) chmod(fd int, perm uint32) error {
	return named("changing the mode", unix.Fchmod(fd, perm))
}

func (l *linuxFS) chmodAt(dir int, name string, perm uint32) error {
	return named("changing the mode", unix.Fchmodat(dir, name, perm, 0))
}

func (l *linuxFS) chown(fd int, uid, gid uint32) error {
	return named("changing the owner", unix.Fchown(fd, int(uid), int(gid)))
}

// sync is not repeated after EINTR: after any error the next fsync of the same file proves nothing.
func (l *linuxFS) sync(fd int) error { return named("fsync", unix.Fsync(fd)) }

func (l *linuxFS) mkdir(dir int, name string, perm uint32) error {
	return named("making the directory", unix.Mkdirat(dir, name, perm))
}

func (l *linuxFS) rename(dir int, from, to string) error {
	if l.noRenameat2.Load() {
		return renamePlain(dir, from, to)
	}
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if err == unix.ENOSYS || err == unix.EINVAL {
		l.noRenameat2.Store(true)
		return renamePlain(dir, from, to)
	}
	return named("renaming", err)
}

// renamePlain looks first. The store's lock keeps other writers out, and numbers are never used twice.
func renamePlain(dir int, from, to string) error {
	if _, err := (linuxStats{}).statAt(dir, to); !errors.Is(err, unix.ENOENT) {
		if err == nil {
			err = unix.EEXIST
		}
		return named("renaming", err)
	}
	return named("renaming", unix.Renameat(dir, from, dir, to))
}

func (l *linuxFS) replace(dir int, from, to string) error {
	return named("renaming", unix.Renameat(dir, from, dir, to))
}

func (l *linuxFS) unlink(dir int, name string) error {
	return named("unlinking", unix.Unlinkat(dir, name, 0))
}

func (l *linuxFS) rmdir(dir int, name string) error {
	return named("removing the directory", unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
}

func (l *linuxFS) lock(fd int) error {
	return named("locking", again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }))
}

func (l *linuxFS) unlock(fd int) error { return named("unlocking", unix.Flock(fd, unix.LOCK_UN)) }

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func named(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}

// linuxStats are the calls that only ask: what a file is, and what a file system is worth and has free.
type linuxStats struct{}

func (linuxStats) stat(fd int) (fileInfo, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &st) })
	return infoOf(&st), named("fstat", err)
}

func (linuxStats) statAt(dir int, name string) (fileInfo, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return infoOf(&st), named("stat", err)
}

func (linuxStats) statPath(path string) (fileInfo, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Stat(path, &st) }); err != nil {
		return fileInfo{}, fmt.Errorf("stat %q: %w", path, err)
	}
	return infoOf(&st), nil
}

func (linuxStats) resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

func infoOf(st *unix.Stat_t) fileInfo {
	return fileInfo{
		id:      fileID{dev: uint64(st.Dev), ino: st.Ino}, //nolint:unconvert // its type depends on the architecture
		size:    st.Size,
		links:   uint64(st.Nlink), //nolint:unconvert // its type depends on the architecture
		uid:     st.Uid,
		gid:     st.Gid,
		perm:    st.Mode & 0o7777,
		regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
		dir:     st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
}

func (linuxStats) kindOf(fd int) (storage, error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return storageOther, named("statfs", err)
	}
	return storageOf(uint32(st.Type)), nil
}

// storageOf goes by the file system's magic number.
func storageOf(magic uint32) storage {
	switch magic {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return storageDurable
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return storageNetwork
	}
	return storageOther
}

func (linuxStats) room(fd int) (int64, error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return 0, named("statfs", err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // an int32 where GOARCH is arm
}

func (l *linuxFS) list(dir int) ([]string, error) {
	fd, err := l.openAt(dir, ".", openDir)
	if err != nil {
		return nil, err
	}
	defer l.close(fd)
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n := 0
		err := again(func() (err error) { n, err = unix.ReadDirent(fd, buf); return err })
		if err != nil || n <= 0 {
			return names, named("listing", err)
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

func (l *linuxFS) readAt(fd int, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(fd, p, off)
		if err != unix.EINTR {
			return max(n, 0), named("reading", err)
		}
	}
}

func isFull(err error) bool     { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }
func isGone(err error) bool     { return errors.Is(err, unix.ENOENT) }
func isTaken(err error) bool    { return errors.Is(err, unix.EEXIST) }
func isBusy(err error) bool     { return errors.Is(err, unix.EWOULDBLOCK) }
func isMedia(err error) bool    { return errors.Is(err, unix.EIO) || errors.Is(err, unix.EINTR) }

// isTrap reports that an entry is something that opening refuses: a link, another mount, a socket.
func isTrap(err error) bool {
	for _, errno := range []unix.Errno{unix.ELOOP, unix.EXDEV, unix.ENXIO, unix.ENODEV, unix.ENOTDIR} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
