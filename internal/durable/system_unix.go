// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

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

// lockFile tries again and again, as a process that waits in flock can not be told to stop. The
// pauses are drawn at random, so that waiting writers have equal chances.
func lockFile(f *os.File) error {
	until := time.Now().Add(lockWait)
	for step := time.Millisecond; ; step = min(2*step, longestStep) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		case time.Now().After(until):
			return fmt.Errorf("another process holds the lock of %q: %w", f.Name(), err)
		}
		time.Sleep(rand.N(step) + 1)
	}
}

const longestStep = 32 * time.Millisecond
