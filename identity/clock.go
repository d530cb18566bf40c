// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import "time"

// A Clock tells the time in two ways, and waits.
type Clock interface {
	// Now is the wall clock. It is written into Leases for people, and nothing is decided by it.
	Now() time.Time
	// Elapsed is the time since an origin that does not change while the process lives. It never goes back, whatever is done to the wall
	// clock. For a Member it must go on while the machine is suspended; for a View it does not matter.
	Elapsed() time.Duration
	// Timer sends on the channel once d has passed. It may be late. stop frees what it uses.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// SystemClock returns the clock of this machine. Its Elapsed is CLOCK_BOOTTIME on Linux, which goes on during a suspend, unlike the
// monotonic time of package time (https://go.dev/issue/24595). On other systems it is that monotonic time. A virtual machine that
// was paused from outside may count the pause, or may not: that is up to its hypervisor.
func SystemClock() Clock { return systemClock{start: time.Now()} }

// systemClock is a SystemClock. start is where Elapsed begins if the system has no better origin.
type systemClock struct{ start time.Time }

func (systemClock) Now() time.Time { return time.Now() }

func (c systemClock) Elapsed() time.Duration { return elapsed(c.start) }

func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
