// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/identity"
)

// TestViewMetricsAreFew restarts members a thousand times and shows that the numbers stay four, and what they say. R-ID-18.
func TestViewMetricsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var last map[identity.State]int
		var told []string
		var quiet []time.Duration
		w := newWorld(t, []string{"dead"}, func(c *identity.ViewConfig) {
			c.Metrics.Peers = func(m map[identity.State]int) {
				mu.Lock()
				defer mu.Unlock()
				if last = m; len(m) != 4 {
					t.Errorf("%d numbers, want one for each state: %v", len(m), m)
				}
			}
			c.Metrics.Fresh = func(fresh bool) { told = append(told, fmt.Sprint(c.Clock.Elapsed().Seconds(), " ", fresh)) }
			c.Metrics.Detected = func(d time.Duration) { quiet = append(quiet, d) }
		})
		defer w.stop()
		for i := range 1000 {
			w.write("a", fmt.Sprint("a", i))
		}
		w.write("b", "b")
		w.after(time.Second)
		want := func(want string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(last) != want {
				t.Errorf("got %v, want %s", last, want)
			}
		}
		want("map[Alive:3 Lost:0 Suspect:0 Unconfirmed:1]")
		w.live(w.ctx, "a", 0, beat)
		w.after(49 * time.Second)
		want("map[Alive:2 Lost:2 Suspect:0 Unconfirmed:0]")
		if !slices.Equal(quiet, []time.Duration{50 * time.Second}) {
			t.Errorf("quiet for %v at their loss, want 50s once", quiet)
		}
		w.set(cutWatch)
		w.after(time.Minute)
		if want := []string{"0 true", "70 false"}; !slices.Equal(told, want) {
			t.Errorf("fresh: got %q, want %q", told, want)
		}
	})
}
