// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is the time since the machine booted, with the time in which it was suspended. Every kernel that Go runs on has that clock.
func elapsed(start time.Time) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return time.Since(start)
	}
	return time.Duration(ts.Nano())
}
