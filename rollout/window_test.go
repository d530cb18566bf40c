// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the table, wherever the tests run
)

// Windows by days, across midnight, and on the days on which clocks change (R-RO-15).
func TestWindows(t *testing.T) {
	h := func(hours, minutes int) time.Duration {
		return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	}
	berlin, newYork, lordHowe := zoneOf(t, "Europe/Berlin"), zoneOf(t, "America/New_York"), zoneOf(t, "Australia/Lord_Howe")
	night := Window{Open: h(22, 0), Close: h(4, 0), Zone: berlin}
	friday := Window{Days: []time.Weekday{time.Friday}, Open: h(22, 0), Close: h(4, 0), Zone: berlin}
	for _, c := range []struct {
		name    string
		windows []Window
		now     string
		until   string // empty: closed
		next    string
	}{
		{"before", []Window{{Open: h(9, 0), Close: h(17, 0)}}, "2026-03-02T08:59:59Z", "", "2026-03-02T09:00:00Z"},
		{"at the opening", []Window{{Open: h(9, 0), Close: h(17, 0)}}, "2026-03-02T09:00:00Z", "2026-03-02T17:00:00Z", "2026-03-03T09:00:00Z"},
		{"at the closing", []Window{{Open: h(9, 0), Close: h(17, 0)}}, "2026-03-02T17:00:00Z", "", "2026-03-03T09:00:00Z"},
		{"to the end of the day", []Window{{Open: h(20, 0), Close: h(24, 0)}}, "2026-03-02T23:59:59Z", "2026-03-03T00:00:00Z", "2026-03-03T20:00:00Z"},
		{"after midnight", []Window{night}, "2026-03-02T01:00:00Z", "2026-03-02T03:00:00Z", "2026-03-02T21:00:00Z"},
		{"the night after the day", []Window{friday}, "2026-03-07T02:00:00Z", "2026-03-07T03:00:00Z", "2026-03-13T21:00:00Z"},
		{"the night before the day", []Window{friday}, "2026-03-06T02:00:00Z", "", "2026-03-06T21:00:00Z"},
		{"windows that touch", []Window{{Open: h(9, 0), Close: h(12, 0)}, {Open: h(12, 0), Close: h(13, 0)}}, "2026-03-02T10:00:00Z", "2026-03-02T13:00:00Z", "2026-03-02T12:00:00Z"},
		{"spring: an hour less", []Window{night}, "2026-03-28T23:00:00Z", "2026-03-29T02:00:00Z", "2026-03-29T20:00:00Z"},
		{"autumn: an hour more", []Window{night}, "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z", "2026-10-25T21:00:00Z"},
		{"opens in the hour that is skipped", []Window{{Open: h(2, 30), Close: h(6, 0), Zone: berlin}}, "2026-03-29T00:59:59Z", "", "2026-03-29T01:00:00Z"},
		{"closes in the hour that is skipped", []Window{{Open: h(1, 0), Close: h(2, 30), Zone: berlin}}, "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T23:00:00Z"},
		{"lies in the hour that is skipped", []Window{{Open: h(2, 15), Close: h(2, 45), Zone: berlin}}, "2026-03-29T01:00:00Z", "", "2026-03-30T00:15:00Z"},
		{"opens in the hour that comes twice", []Window{{Open: h(2, 30), Close: h(6, 0), Zone: berlin}}, "2026-10-25T00:30:00Z", "2026-10-25T05:00:00Z", "2026-10-26T01:30:00Z"},
		{"closes in the hour that comes twice", []Window{{Open: h(1, 0), Close: h(2, 30), Zone: berlin}}, "2026-10-25T00:29:59Z", "2026-10-25T00:30:00Z", "2026-10-26T00:00:00Z"},
		{"not the second time", []Window{{Open: h(1, 0), Close: h(2, 30), Zone: berlin}}, "2026-10-25T01:15:00Z", "", "2026-10-26T00:00:00Z"},
		{"west of Greenwich", []Window{{Open: h(1, 30), Close: h(5, 0), Zone: newYork}}, "2026-11-01T05:30:00Z", "2026-11-01T10:00:00Z", "2026-11-02T06:30:00Z"},
		{"half an hour", []Window{{Open: h(2, 15), Close: h(5, 0), Zone: lordHowe}}, "2026-10-03T15:30:00Z", "2026-10-03T18:00:00Z", "2026-10-04T15:15:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := moment(t, c.now)
			until, open := openUntil(c.windows, now)
			if open != (c.until != "") || open && !until.Equal(moment(t, c.until)) {
				t.Errorf("open %t until %s, want %q", open, until.UTC().Format(time.RFC3339), c.until)
			}
			if next := nextOpen(c.windows, now); !next.Equal(moment(t, c.next)) {
				t.Errorf("opens next at %s, want %s", next.UTC().Format(time.RFC3339), c.next)
			}
		})
	}
}

func TestCycleIsMeasured(t *testing.T) {
	var seen []time.Duration
	for i := range 20 {
		seen = append(seen, time.Duration(20-i)*time.Minute)
	}
	for _, c := range []struct {
		stated time.Duration
		seen   []time.Duration
		want   time.Duration
	}{{time.Hour, seen, time.Hour}, {0, seen[:4], 10 * time.Minute}, {0, seen[15:], 5 * time.Minute}, {0, seen, 19 * time.Minute}} {
		if got := cycleOf(c.stated, c.seen); got != c.want {
			t.Errorf("%d cycles, stated %s: %s, want %s", len(c.seen), c.stated, got, c.want)
		}
	}
}

func TestBackOffIsBoundedAndJittered(t *testing.T) {
	var least, most time.Duration
	for i := range 1000 {
		d := backOff(time.Minute, "uid-"+time.Duration(i).String(), 3)
		if least == 0 || d < least {
			least = d
		}
		most = max(most, d)
	}
	if least > 20*time.Second || most < 230*time.Second || most > 240*time.Second {
		t.Errorf("rests after 3 failures are %s to %s, want them spread over up to 4m", least, most)
	}
	if d := backOff(time.Minute, "a", 1<<30); d > time.Hour || d <= 0 {
		t.Errorf("after very many failures: %s, want up to 1h", d)
	}
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
