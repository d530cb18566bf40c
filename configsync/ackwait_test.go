// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// waits is a node whose configs wait for 15 min, and are acknowledged by given.
func waits(t *testing.T, boot *atomic.Int32, given func(lkg.Ref) (bool, error), f func(n *node)) {
	t.Helper()
	tuned(t, func(o *configsync.Options[string]) {
		o.BootID = fmt.Sprintf("boot-%d", boot.Load())
		o.Ack = &configsync.Ack{Given: func(_ context.Context, r lkg.Ref) (bool, error) { return given(r) }}
	}, f)
}

// restarts has n run for d, and starts it again by end, some times.
func (n *node) restarts(times int, d time.Duration, end func()) {
	n.t.Helper()
	for range times {
		n.wait(d)
		end()
		n.start()
	}
}

// The deadline of an acknowledgement is one for a config, however often its agent is restarted or the machine boots
// meanwhile, and it is not held against the one after it. Time in which nothing ran is not part of it.
func TestDeadlineOfTheAcknowledgementHoldsOverRestarts(t *testing.T) {
	for name, again := range map[string]struct {
		times int
		each  time.Duration
		boots bool
	}{
		"restarts": {2, 6 * time.Minute, false}, "boots": {2, 6 * time.Minute, true}, "restarts before the first round": {144, 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var boot atomic.Int32
			waits(t, &boot, func(lkg.Ref) (bool, error) { return false, nil }, func(n *node) {
				v1 := n.push("v1", "good-1", "threshold", "3")
				n.wait(time.Second)
				n.restarts(again.times, again.each, func() {
					n.stop()
					n.wait(time.Hour) // it is off
					if again.boots {
						boot.Add(1)
					}
				})
				n.wait(2 * time.Minute)
				n.runs(v1, "it waits for 14 minutes")
				n.wait(2 * time.Minute)
				n.runs(configsync.Object{}, "it waits for 16 minutes, of which this run is 4")
				n.condition(lkg.StatusFalse, fmt.Sprintf("rejected (UID: %s), cause: not acknowledged within 15m0s", v1.UID), "using last-known-good (init)")
				v2 := n.push("v2", "good-2")
				n.wait(14 * time.Minute)
				n.runs(v2, "another config waits anew")
				n.wait(2 * time.Minute)
				n.runs(configsync.Object{}, "it waits for 16 minutes")
			})
		})
	}
}

// A kill loses no more of the wait than the time between two rounds of probes.
func TestAKillDoesNotBeginTheWaitAnew(t *testing.T) {
	waits(t, new(atomic.Int32), func(lkg.Ref) (bool, error) { return false, nil }, func(n *node) {
		n.push("v1", "good-1", "threshold", "9")
		n.wait(time.Second)
		n.restarts(2, 7*time.Minute, func() {
			n.kill()
			n.stop()
		})
		n.wait(2 * time.Minute)
		n.runs(configsync.Object{}, "it waits for 16 minutes, less two rounds of 10 s")
	})
}

// What was acknowledged has a whole deadline after the next start; and a record of the wait that can't be read, or
// written, is in the way of no call.
func TestAnAcknowledgementEndsTheWait(t *testing.T) {
	var given atomic.Bool
	waits(t, new(atomic.Int32), func(lkg.Ref) (bool, error) { return given.Load(), nil }, func(n *node) {
		v1 := n.push("v1", "good-1", "trial", "2h", "threshold", "9")
		n.wait(14 * time.Minute)
		given.Store(true)
		n.wait(time.Minute)
		n.stop()
		given.Store(false)
		n.start()
		n.wait(14 * time.Minute)
		n.runs(v1, "it was acknowledged before this start, and waits anew")
		n.stop()
		if err := n.disk.Put(t.Context(), "acknowledgement", []byte("{")); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.wait(14 * time.Minute)
		n.runs(v1, "what can't be read is no wait")
		n.wait(2 * time.Minute)
		n.runs(configsync.Object{}, "a deadline holds in one run, too")
	})
	full := errors.New("no space left")
	waits(t, new(atomic.Int32), func(lkg.Ref) (bool, error) { return false, nil }, func(n *node) {
		v1 := n.push("v1", "good-1")
		n.wait(time.Minute)
		n.disk.Fail(full)
		n.wait(13 * time.Minute)
		n.runs(v1, "the deadline has not come")
		n.wait(2 * time.Minute)
		n.runs(configsync.Object{}, "a disk that keeps nothing doesn't stop the clock")
		n.disk.Fail(nil)
	})
}
