// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	"golang.org/x/sys/unix"
)

// C-36: a disk without space, without inodes or that can't be written is full; what is kept back is for root.
func TestFullness(t *testing.T) {
	const block = 4096
	for _, c := range []struct {
		name string
		s    unix.Statfs_t
		root bool
		want string
	}{
		{"space and inodes", unix.Statfs_t{Bsize: block, Blocks: 1 << 20, Bfree: 1 << 10, Bavail: 1 << 10, Files: 9,
			Ffree: 1}, false, ""},
		{"no disk at all", unix.Statfs_t{Bsize: block}, false, ""},
		{"full", unix.Statfs_t{Bsize: block, Blocks: 1 << 20, Bfree: 1 << 10, Bavail: 8}, false,
			"has 32 KiB left of 4096 MiB, want 1024 KiB"},
		{"full but for root", unix.Statfs_t{Bsize: block, Blocks: 1 << 20, Bfree: 1 << 10}, true, ""},
		{"no inode", unix.Statfs_t{Bsize: block, Blocks: 1 << 20, Bfree: 1 << 10, Bavail: 1 << 10, Files: 9}, true,
			"has no inode left of 9"},
		{"read-only", unix.Statfs_t{Bsize: block, Blocks: 1 << 20, Bfree: 1 << 10, Flags: unix.ST_RDONLY}, true,
			"is mounted read-only"},
	} {
		if got := describeFull(&c.s, c.root); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
