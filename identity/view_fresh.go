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
// A list delivers in any order: the canary's write may come before older ones that the same list brings. Hence a proof is settled only when
// something was seen that no longer is of that list, at the latest the next write of the canary.
//
// Trust is good enough for a suspicion. Nobody is lost but by settled time: then it is certain that no write was taken for Liveness, of which
// a holder that goes on would have made one within Hold. How late its renewals are, and how far behind the watch is, does not matter.
type freshClock struct {
	freshFor time.Duration
	seen     bool
	sent     time.Duration // when the newest write of the canary was sent that was seen
	proven   time.Duration // the fresh time that is proven
	settled  time.Duration // the fresh time up to which every write was seen, whatever is amid a list
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
	c.settle()
	if c.fresh(now) {
		c.proven = max(c.proven, c.began+sent-c.from)
	} else {
		c.began, c.from, back = c.proven, now, true
	}
	c.seen, c.sent = true, sent
	return back
}

// settle takes note that the list is over of which the newest write of the canary may have been.
func (c *freshClock) settle() { c.settled = c.proven }
