// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

func classes() []provider.Class {
	return []provider.Class{provider.InvalidConfig, provider.Unauthorized, provider.Stockout, provider.RateLimited, provider.Conflict,
		provider.Unavailable, provider.NotSupported, provider.NotFound, provider.Internal}
}

// Every class waits longer with each try up to its most, and none is for ever.
func TestBackoffGrows(t *testing.T) {
	for _, c := range append(classes(), "unknown") {
		before := c.Backoff(1)
		for tries := 2; tries < 200; tries++ {
			wait := c.Backoff(tries)
			if wait <= 0 || wait > 10*time.Minute || wait < before || wait > 2*before {
				t.Errorf("%s: %v after %d tries and %v before, want it to grow by at most twice, to at most 10 min", c, wait, tries, before)
			}
			before = wait
		}
		if most := c.Backoff(1 << 62); most != before {
			t.Errorf("%s: %v after a great many tries, want %v", c, most, before)
		}
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		class provider.Class
		tries int
		want  time.Duration
	}{
		{provider.Unavailable, -1, time.Second},
		{provider.Unavailable, 0, time.Second},
		{provider.Unavailable, 1, time.Second},
		{provider.Unavailable, 2, 2 * time.Second},
		{provider.Unavailable, 7, 64 * time.Second},
		{provider.Unavailable, 8, 2 * time.Minute},
		{"unknown", 2, 4 * time.Second},
		{"", 9, 0},
	} {
		if got := c.class.Backoff(c.tries); got != c.want {
			t.Errorf("%q after %d tries: %v, want %v", c.class, c.tries, got, c.want)
		}
	}
}

// The table in the documentation is what the code does.
func TestBackoffIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Fields(strings.TrimPrefix(line, "//")); len(cells) > 3 && strings.HasPrefix(line, "//\t") {
			rows[cells[0]] = cells[1:3]
		}
	}
	for _, c := range classes() {
		first, most := c.Backoff(1), c.Backoff(100)
		row := rows[string(c)]
		if len(row) != 2 || row[0] != short(first) || row[1] != short(most) {
			t.Errorf("%s waits %v at first and %v at most, documented are %v", c, short(first), short(most), row)
		}
	}
}

func short(d time.Duration) string {
	return strings.TrimSuffix(d.String(), "m0s") + map[bool]string{true: "m"}[strings.HasSuffix(d.String(), "m0s")]
}

func TestRetryElsewhere(t *testing.T) {
	for _, c := range append(classes(), "", "unknown") {
		if got := provider.RetryElsewhere(c); got != (c == provider.Stockout) {
			t.Errorf("%q: %v", c, got)
		}
	}
}
