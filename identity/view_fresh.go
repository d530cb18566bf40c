// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import "time"

// A freshClock counts the time in which a view was up to date, and stands still otherwise. Each of its methods is given the elapsed time
// of the [Clock], which never goes back.
//
// A watch delivers the writes in the order in which the server took them. So a write of the canary that was seen proves that every other
// write before it was seen too: up to the moment at which the canary sent it. From then on the clock goes on for freshFor, on trust. If no
// newer write of the canary comes in that time, the trust was for nothing: what it has counted is taken back.
//
// A member whose stored renewals are at most R apart is never quiet for longer than freshFor + R while the clock goes. As R is below half of
// Liveness (Timing sees to that) and freshFor is at most half of it, a lagging or broken watch makes nobody lost.
type freshClock struct {
	freshFor time.Duration
	seen     bool
	sent     time.Duration // when the newest write of the canary was sent that was seen
	proven   time.Duration // the fresh time that is proven
	began    time.Duration // the fresh time at which the clock went on last, and
	from     time.Duration // the elapsed time of that
}

// fresh says whether the clock goes.
func (c *freshClock) fresh(now time.Duration) bool { return c.seen && now < c.ends() }

// ends is when the clock stops unless a newer write is seen.
func (c *freshClock) ends() time.Duration { return c.sent + c.freshFor }

// read returns the fresh time.
func (c *freshClock) read(now time.Duration) time.Duration {
	if !c.fresh(now) {
		return c.proven
	}
	return c.began + now - c.from
}

// at returns the elapsed time at which the clock will read t, if it goes on until then.
func (c *freshClock) at(t time.Duration) time.Duration { return c.from + t - c.began }

// prove takes note of a write of the canary that was seen now. back says that time was taken back: no reading of before may be later than
// that of now.
func (c *freshClock) prove(now, sent time.Duration) (back bool) {
	if c.seen && sent <= c.sent {
		return false
	}
	if c.fresh(now) {
		c.proven = max(c.proven, c.began+sent-c.from)
	} else {
		c.began, c.from, back = c.proven, now, true
	}
	c.seen, c.sent = true, sent
	return back
}
