// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import "time"

// A trial is how far a verification is. It counts time in which an agent runs, by its monotonic clock.
type trial struct {
	// Boot is the boot that Healthy was gathered in.
	Boot string `json:"boot,omitempty"`
	// Healthy is the time between checks that passed, since the last one that failed.
	Healthy time.Duration `json:"healthyNanoseconds,omitempty"`
	// Spent is the time since the verification began.
	Spent time.Duration `json:"spentNanoseconds,omitempty"`
	// Why is what the last check that did not pass has said.
	Why why `json:"why"`
}

// A check is the last one that this process has made.
type check struct {
	key, boot string
	at        time.Time
	verdict   Verdict
	why       why
}

func (c check) of(key, boot string) bool { return c.key == key && c.boot == boot }

// credit adds a check to the trial. No time is credited as healthy that no agent saw: the first check of a process, or of a boot, credits
// nothing, and counts as one interval against the bound, so that an agent that keeps crashing comes to it too. What lies between two
// checks is not believed beyond most.
func (t trial) credit(last, now check, every, most time.Duration) trial {
	if t.Boot != now.boot {
		t.Boot, t.Healthy = now.boot, 0
	}
	if !last.of(now.key, now.boot) {
		t.Spent += every
		last = check{at: now.at}
	}
	gap := now.at.Sub(last.at)
	t.Spent += gap
	if now.verdict != Pass {
		t.Why = now.why
	}
	switch {
	case now.verdict == Fail:
		t.Healthy = 0
	case now.verdict == Pass && last.verdict == Pass:
		t.Healthy += min(gap, most)
	}
	return t
}
