// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine came up, suspended or not; 0 where the kernel doesn't say.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
