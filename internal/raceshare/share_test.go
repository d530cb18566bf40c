// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package raceshare

import "testing"

// Under the race detector there is one case in ten, and never none; make test runs this test with it, and make searches without.
func TestShare(t *testing.T) {
	for _, c := range []struct{ all, share int }{{0, 0}, {1, 1}, {9, 1}, {10, 1}, {11, 2}, {500, 50}} {
		want := c.all
		if race {
			want = c.share
		}
		t.Setenv(env, "")
		if got := Of(t, c.all); got != want {
			t.Errorf("of %d cases with the race detector %t: got %d, want %d", c.all, race, got, want)
		}
		t.Setenv(env, "all")
		if got := Of(t, c.all); got != c.all {
			t.Errorf("of %d cases, all demanded: got %d", c.all, got)
		}
	}
}

// The numbers of seeds are of several types.
func TestShareOfSeeds(t *testing.T) {
	if got, want := Of(t, uint64(120)), uint64(Of(t, 120)); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}
