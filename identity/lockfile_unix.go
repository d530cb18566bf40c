// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package identity

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openLock opens the file, and makes it if need be. It follows no link: what is written to it must not land elsewhere.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
}

// flock locks an open file, or returns errLocked at once.
func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

// idOf is the device and the inode of an open file: no other file of this boot has both while it is open.
func idOf(f *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", fmt.Errorf("asking for the inode: %w", err)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}
