// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

// A rest is in proportion to the pass, bounded, never longer than the pass has asked for, and none where something was done or is under way.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		e           effort
		after, want time.Duration
	}{
		{effort{}, 0, 0},
		{effort{took: time.Millisecond}, 0, 30 * time.Millisecond},
		{effort{took: time.Millisecond}, time.Hour, 30 * time.Millisecond},
		{effort{took: time.Millisecond}, 20 * time.Millisecond, 20 * time.Millisecond},
		{effort{took: time.Second}, 0, 2 * time.Second},
		{effort{took: time.Second, writes: 1}, 0, 0},
		{effort{took: time.Second, inFlight: true}, 0, 0},
	} {
		if got := c.e.rest(c.after); got != c.want {
			t.Errorf("%+v that asks for %v: a rest of %v, want %v", c.e, c.after, got, c.want)
		}
	}
}
