// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/backoff"
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
func lockFile(f *os.File, wait time.Duration) error {
	until := time.Now().Add(wait)
	for try := 0; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		case time.Now().After(until):
			return fmt.Errorf("another process holds the lock of %q: %w", f.Name(), err)
		}
		<-time.After(backoff.Jitter(backoff.After(try, time.Millisecond, longestPause), 0.1, 1, nil))
	}
}

const longestPause = 32 * time.Millisecond
