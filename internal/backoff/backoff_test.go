// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

var limits = []struct {
	name        string
	first, most time.Duration
	want        []time.Duration
}{
	{"most is a power", 1, 8, []time.Duration{1, 2, 4, 8, 8, 8}},
	{"most is between two", 10, 25, []time.Duration{10, 20, 25, 25}},
	{"first is most", 7, 7, []time.Duration{7, 7, 7}},
	{"first exceeds most", 9, 7, []time.Duration{7, 7, 7}},
	{"near the longest duration", math.MaxInt64/2 + 1, math.MaxInt64, []time.Duration{math.MaxInt64/2 + 1, math.MaxInt64, math.MaxInt64}},
	{"without delay", 0, 5, []time.Duration{0, 0, 0}},
}

func TestDelayDoublesUpToMost(t *testing.T) {
	for _, l := range limits {
		b := backoff.Backoff{First: l.first, Most: l.most}
		var byNext, byAfter, byBackoff []time.Duration
		var last time.Duration
		for n := range l.want {
			last = backoff.Next(last, l.first, l.most)
			byNext = append(byNext, last)
			byAfter = append(byAfter, backoff.After(n, l.first, l.most))
			byBackoff = append(byBackoff, b.Next())
		}
		for by, got := range map[string][]time.Duration{"Next": byNext, "After": byAfter, "Backoff": byBackoff} {
			if !slices.Equal(got, l.want) {
				t.Errorf("%s: %s gives %v, want %v", l.name, by, got, l.want)
			}
		}
		b.Reset()
		if got := b.Next(); got != l.want[0] {
			t.Errorf("%s: after Reset: got %v, want %v", l.name, got, l.want[0])
		}
	}
}

func TestManyFailuresStayAtMost(t *testing.T) {
	if got := backoff.After(math.MaxInt, time.Nanosecond, time.Hour); got != time.Hour {
		t.Errorf("got %v, want 1 h", got)
	}
	if got := backoff.After(-1, time.Second, time.Hour); got != time.Second {
		t.Errorf("before any failure: got %v, want 1 s", got)
	}
}

func TestJitterIsDrawnBetweenItsFactors(t *testing.T) {
	for _, c := range []struct {
		from, to, drawn float64
		want            time.Duration
	}{
		{1, 1.2, 0, 10 * time.Second}, {1, 1.2, 0.5, 11 * time.Second}, {1, 1.2, 1, 12 * time.Second},
		{0.8, 1, 0, 8 * time.Second}, {0.8, 1, 1, 10 * time.Second},
		{0.95, 1.05, 0.5, 10 * time.Second}, {0.95, 1.05, 0, 9500 * time.Millisecond},
		{1, 1, 0.7, 10 * time.Second}, {0, 1, 0, 0},
	} {
		if got := backoff.Jitter(10*time.Second, c.from, c.to, func() float64 { return c.drawn }); got != c.want {
			t.Errorf("%v to %v, drawn %v: got %v, want %v", c.from, c.to, c.drawn, got, c.want)
		}
	}
	if got := backoff.Jitter(math.MaxInt64, 1, 2, func() float64 { return 0.9 }); got != math.MaxInt64 {
		t.Errorf("got %v, want the longest duration", got)
	}
}

func TestJitterDrawsByItself(t *testing.T) {
	drawn := map[time.Duration]bool{}
	for range 100 {
		d := backoff.Jitter(time.Hour, 0.5, 1, nil)
		if d < time.Hour/2 || d > time.Hour {
			t.Fatalf("got %v, want between 30 min and 1 h", d)
		}
		drawn[d] = true
	}
	if len(drawn) < 90 {
		t.Errorf("100 draws give %d delays", len(drawn))
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		b := backoff.Backoff{First: time.Second, Most: time.Minute}
		for i, want := range []struct {
			waited bool
			after  time.Duration
		}{{true, time.Second}, {true, 3 * time.Second}, {false, 5 * time.Second}, {false, 5 * time.Second}} {
			if got := b.Wait(ctx); got != want.waited || time.Since(began) != want.after {
				t.Errorf("wait %d: got %v after %v, want %v", i+1, got, time.Since(began), want)
			}
		}
		if backoff.Sleep(ctx, 0) || !backoff.Sleep(t.Context(), 0) {
			t.Error("without a delay: got a wait after the context's end, or none before")
		}
	})
}
