// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags keep a planted link from being written through, and a planted pipe from blocking. What
// is opened for reading is a directory, which may be behind a link, or a plain file.
func openFlags(flag int) int {
	if flag == os.O_RDONLY {
		return unix.O_NONBLOCK
	}
	return unix.O_NOFOLLOW | unix.O_NONBLOCK
}

func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
