// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func (l *linuxFS) stat(fd int) (fileInfo, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &st) })
	return infoOf(&st), named("fstat", err)
}

func (l *linuxFS) statAt(dir int, name string) (fileInfo, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return infoOf(&st), named("stat", err)
}

func (l *linuxFS) statPath(path string) (fileInfo, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Stat(path, &st) }); err != nil {
		return fileInfo{}, fmt.Errorf("stat %q: %w", path, err)
	}
	return infoOf(&st), nil
}

func (l *linuxFS) resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

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

func (l *linuxFS) kindOf(fd int) (storage, error) {
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

func (l *linuxFS) room(fd int) (int64, error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return 0, named("statfs", err)
	}
	return int64(st.Bavail) * st.Bsize, nil
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
