// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// LookAtDir looks at a state directory. It opens nothing in it.
func LookAtDir(path string) *Dir {
	d := &Dir{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		d.Err = err
		return d
	}
	d.NotDir, d.Mode = !info.IsDir(), uint32(info.Mode().Perm())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		d.Foreign = int(st.Uid) != os.Geteuid()
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil {
		d.FileSystem = nameOf(int64(fs.Type)) //nolint:unconvert // int32 on some machines
	}
	return d
}

// nameOf names a file system by the number that the kernel has for it.
func nameOf(magic int64) string {
	switch uint32(magic) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	}
	return ""
}

// LookAtClock looks at the clock of the machine.
func LookAtClock() *Clock {
	_, err := os.Stat("/sys/class/rtc/rtc0")
	c := &Clock{Hardware: err == nil}
	var t unix.Timex // with no mode set, nothing is adjusted
	state, err := unix.Adjtimex(&t)
	c.Known, c.Synchronized = err == nil, err == nil && state != unix.TIME_ERROR
	return c
}
