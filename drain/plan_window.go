// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"
)

// planWindows are the windows of a policy; none means always open.
type planWindows []Window

// at returns the end of the time around t in which a window is open, zero for no end, and false where none is open at t.
func (ws planWindows) at(t time.Time) (end time.Time, open bool) {
	if len(ws) == 0 {
		return time.Time{}, true
	}
	end = t
	for extended := true; extended; {
		extended = false
		for _, w := range ws {
			if end.Before(w.From) || !w.Until.IsZero() && !end.Before(w.Until) {
				continue
			}
			if w.Until.IsZero() {
				return time.Time{}, true
			}
			end, open, extended = w.Until, true, true
		}
	}
	return end, open
}

// openFrom is the first time from t on at which a window is open; zero for none.
func (ws planWindows) openFrom(t time.Time) time.Time {
	if _, open := ws.at(t); open {
		return t
	}
	var first time.Time
	for _, w := range ws {
		if w.From.After(t) && (first.IsZero() || w.From.Before(first)) && (w.Until.IsZero() || w.From.Before(w.Until)) {
			first = w.From
		}
	}
	return first
}

// state reports whether evictions may start at t, and if not, when the next window opens; zero for never.
func (ws planWindows) state(t time.Time) (open bool, next time.Time) {
	if _, open = ws.at(t); open {
		return true, time.Time{}
	}
	return false, ws.openFrom(t)
}

// confine holds back what would start outside the windows. What is under way goes on.
func (n *nodePass) confine(w *podWork) {
	asks := w.asksAnyway()
	if w.Action != Evict && !asks && (w.Action != Hook || !w.fresh) {
		return
	}
	end, open := n.windows.at(n.now)
	if open {
		n.wake(end)
		return
	}
	opens := n.windows.openFrom(n.now)
	n.wake(opens)
	if asks {
		w.Step, w.GracePeriodSeconds = "", nil
		return
	}
	message := "no window is open, and none follows"
	w.Next, w.NextAt = "", time.Time{}
	if !opens.IsZero() {
		message = "no window is open; the next one opens at " + planTime(opens)
		if w.Action == Evict {
			w.Next, w.NextAt = w.Step, opens
		}
	}
	w.decide(Wait, WindowClosed, message)
	w.Step, w.GracePeriodSeconds, w.Hook, w.HookSilence = "", nil, "", 0
}
