// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fullDisk says in what way the file system of a directory can't be written; empty if it can.
func fullDisk(dir string) (why string, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	return describeFull(&s, os.Geteuid() == 0), nil
}

// describeFull says in what way a file system can't be written; empty if it can. What is kept back of it is for root.
func describeFull(s *unix.Statfs_t, root bool) string {
	blocks := s.Bavail
	if root {
		blocks = s.Bfree
	}
	size := uint64(s.Bsize) //nolint:gosec // a block has a positive size
	free := blocks * size
	switch {
	case s.Flags&unix.ST_RDONLY != 0:
		return "is mounted read-only"
	case s.Blocks > 0 && free < minFree:
		return fmt.Sprintf("has %d KiB left of %d MiB, want %d KiB", free>>10, s.Blocks*size>>20, minFree>>10)
	case s.Files > 0 && s.Ffree == 0:
		return fmt.Sprintf("has no inode left of %d", s.Files)
	}
	return ""
}
