// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"sync"
	"time"
)

// A Clock is a clock that lies: its wall clock is Offset away from the time of the test and all of it runs at Rate. It can be suspended,
// as a machine is: no timer fires meanwhile, and Elapsed goes on. It satisfies identity.Clock. Use it in a bubble of testing/synctest.
type Clock struct {
	offset time.Duration
	rate   float64
	origin time.Time

	mu      sync.Mutex
	awake   chan struct{} // closed while the machine is awake
	timers  map[*timer]struct{}
	stopped bool
}

// A timer knows what is left of it while the machine sleeps.
type timer struct {
	c    chan time.Time
	real *time.Timer
	ends time.Time
	left time.Duration
}

// rounding is how much later a timer fires, so that it is not early by what is cut off of Elapsed and of its own time.
const rounding = 2 * time.Nanosecond

// NewClock returns a clock that is offset ahead of the test's and runs rate times as fast; a rate of 0 means 1.
func NewClock(offset time.Duration, rate float64) *Clock {
	if rate == 0 {
		rate = 1
	}
	awake := make(chan struct{})
	close(awake)
	return &Clock{offset: offset, rate: rate, origin: time.Now(), awake: awake, timers: map[*timer]struct{}{}}
}

// Now is the wall clock.
func (c *Clock) Now() time.Time { return c.origin.Add(c.offset).Add(c.Elapsed()) }

// Elapsed is the time since the clock was made, at its rate. It goes on during a suspend.
func (c *Clock) Elapsed() time.Duration {
	return time.Duration(float64(time.Since(c.origin)) * c.rate)
}

// Timer sends once d of this clock has passed in which the machine was awake. It is never early: Elapsed has gone on by d then.
func (c *Clock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := &timer{c: make(chan time.Time, 1)}
	if d > 0 {
		t.left = time.Duration(float64(d)/c.rate) + rounding
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers[t] = struct{}{}
	if !c.stopped {
		c.start(t)
	}
	return t.c, func() { c.cancel(t) }
}

func (c *Clock) start(t *timer) {
	t.ends = time.Now().Add(t.left)
	t.real = time.AfterFunc(t.left, func() { c.fire(t) })
}

func (c *Clock) fire(t *timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waiting := c.timers[t]; !waiting || c.stopped {
		return
	}
	delete(c.timers, t)
	t.c <- c.Now()
}

func (c *Clock) cancel(t *timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.timers, t)
	if t.real != nil {
		t.real.Stop()
	}
}

// Suspend stops the machine: its timers stand still, and requests of its clients wait for their answers.
func (c *Clock) Suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.stopped, c.awake = true, make(chan struct{})
	for t := range c.timers {
		t.real.Stop()
		t.left = max(0, time.Until(t.ends))
	}
}

// Resume lets it go on.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		return
	}
	c.stopped = false
	close(c.awake)
	for t := range c.timers {
		c.start(t)
	}
}

// running returns a channel that is closed while the machine is awake.
func (c *Clock) running() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awake
}
