// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// day is the length of a day on a clock.
const day = 24 * time.Hour

// A span is one opening of a window. It is empty if it opens and closes in an hour that the clock skips.
type span struct{ open, close time.Time }

func (s span) holds(t time.Time) bool { return !t.Before(s.open) && t.Before(s.close) }

// on is the opening of the window on a date of its zone, that many days after the date of t; false if it does not open on that day.
func (w Window) on(t time.Time, days int) (span, bool) {
	zone := w.Zone
	if zone == nil {
		zone = time.UTC
	}
	year, month, date := t.In(zone).Date()
	noon := time.Date(year, month, date+days, 12, 0, 0, 0, zone)
	if len(w.Days) > 0 && !slices.Contains(w.Days, noon.Weekday()) {
		return span{}, false
	}
	closing := w.Close
	if closing <= w.Open {
		closing += day
	}
	s := span{open: wall(noon, w.Open), close: wall(noon, closing)}
	return s, s.open.Before(s.close)
}

// wall is the first moment at which a clock in the zone of the date shows a time, or the moment at which it skips that time.
func wall(date time.Time, clock time.Duration) time.Time {
	year, month, d := date.Date()
	want := time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Add(clock)
	t := time.Date(year, month, d, 0, 0, int(clock/time.Second), int(clock%time.Second), date.Location())
	start, end := t.ZoneBounds()
	switch shown := asUTC(t); {
	case shown.After(want):
		return start
	case shown.Before(want):
		return end
	}
	if start.IsZero() {
		return t
	}
	_, now := t.Zone()
	_, before := start.Add(-1).Zone()
	if first := t.Add(time.Duration(now-before) * time.Second); first.Before(start) {
		return first
	}
	return t
}

// asUTC is the moment at which a clock in UTC shows what the one of t shows.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// chained is how many windows that touch are taken for one: more than a fortnight of whole days.
const chained = 16

// openUntil reports whether one of the windows is open, and until when: the next one counts too if there is no gap.
func openUntil(windows []Window, now time.Time) (until time.Time, open bool) {
	until = now
	for range chained {
		last := until
		for _, w := range windows {
			for days := -1; days <= 0; days++ {
				if s, ok := w.on(last, days); ok && s.holds(last) && s.close.After(until) {
					until = s.close
				}
			}
		}
		if until.Equal(last) {
			break
		}
	}
	return until, until.After(now)
}

// nextOpen is when the next of the windows opens; zero if none does within two weeks.
func nextOpen(windows []Window, now time.Time) time.Time {
	var next time.Time
	for _, w := range windows {
		for days := 0; days <= 14; days++ {
			s, ok := w.on(now, days)
			if !ok || !s.open.After(now) {
				continue
			}
			if next.IsZero() || s.open.Before(next) {
				next = s.open
			}
			break
		}
	}
	return next
}

// enough is how many cycles have to be known before they are believed, and defaultCycle what is taken until then.
const (
	enough       = 5
	defaultCycle = 10 * time.Minute
)

// cycleOf is how long a node takes: what the policy says, or 19 of 20 of those so far.
func cycleOf(stated time.Duration, seen []time.Duration) time.Duration {
	if stated > 0 {
		return stated
	}
	if len(seen) < enough {
		return defaultCycle
	}
	all := slices.Clone(seen)
	slices.Sort(all)
	return all[(len(all)*95+99)/100-1]
}

// window says why no node may be begun now by the windows, or nil.
func (p *plan) window() *Why {
	if len(p.policy.Windows) == 0 {
		return nil
	}
	until, open := openUntil(p.policy.Windows, p.now)
	why := &Why{Reason: reasonWindow, Message: "no window is open"}
	if open {
		if !p.now.Add(p.cycle).After(until) {
			return nil
		}
		why = &Why{Reason: reasonDoesNotFit, Message: "a node takes " + p.cycle.String() + ", the window closes at " + until.UTC().Format(time.RFC3339)}
	}
	if next := nextOpen(p.policy.Windows, p.now); !next.IsZero() {
		why.After = next.Sub(p.now)
		why.Message += ", the next one opens at " + next.UTC().Format(time.RFC3339)
	}
	return why
}
