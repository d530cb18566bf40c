// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Policy is what a unit says about being started again, in the words of systemd.service(5) and systemd.unit(5).
type Policy struct {
	// Unit is the name of the unit.
	Unit string
	// Restart is Restart=, for example on-failure.
	Restart string
	// Clean are the exit statuses of SuccessExitStatus=, besides 0.
	Clean []int
	// Prevent and Force are those of RestartPreventExitStatus= and RestartForceExitStatus=.
	Prevent, Force []int
	// Delay is RestartSec=.
	Delay time.Duration
	// Burst is how many starts within Interval systemd allows before it leaves the unit down; no limit where one of them is 0.
	Burst    int
	Interval time.Duration
}

// ErrStaysDown means that systemd doesn't start a unit again.
var ErrStaysDown = errors.New("systemd leaves the unit down")

// After says whether systemd starts the unit again after its main process has exited with that status: nil, or an error that says what
// to change, and is [ErrStaysDown]. Ask it at the start of a process that uses restart.Exit, and warn.
func (p Policy) After(status int) error {
	stays := func(why string) error {
		return fmt.Errorf("unit %q: after exit status %d %w: %s", p.Unit, status, ErrStaysDown, why)
	}
	clean := status == 0 || slices.Contains(p.Clean, status)
	switch {
	case slices.Contains(p.Prevent, status):
		return stays("RestartPreventExitStatus has it")
	case p.Restart == "always" || slices.Contains(p.Force, status):
		return nil
	case p.Restart == "on-success" && clean, p.Restart == "on-failure" && !clean:
		return nil
	case p.Restart == "on-failure":
		return stays("it is clean, and Restart=on-failure; use Restart=always, or exit with another status")
	default:
		return stays("Restart=" + p.Restart + "; use Restart=always")
	}
}

// Endless says whether systemd goes on starting the unit however often it crashes: nil, or an error that says what to change, and is
// [ErrStaysDown]. A node whose crashes are counted by a guard needs a start after the last one of a bad config.
func (p Policy) Endless() error {
	if p.Burst <= 0 || p.Interval <= 0 || p.Delay >= p.Interval || time.Duration(p.Burst)*p.Delay >= p.Interval {
		return nil
	}
	return fmt.Errorf("unit %q: after %d starts within %s %w: use StartLimitIntervalSec=0", p.Unit, p.Burst, p.Interval, ErrStaysDown)
}

// policyOf reads the properties as D-Bus gives them. What is absent or of another type is left empty.
func policyOf(unit string, p map[string]any) Policy {
	burst, _ := p["StartLimitBurst"].(uint32)
	return Policy{
		Unit: unit, Restart: text(p, "Restart"),
		Clean: statuses(p["SuccessExitStatus"]), Prevent: statuses(p["RestartPreventExitStatus"]), Force: statuses(p["RestartForceExitStatus"]),
		Delay: micros(p["RestartUSec"]), Burst: int(burst), Interval: micros(p["StartLimitIntervalUSec"]),
	}
}

// micros is a number of microseconds; what a Duration can't hold, as systemd's infinity, is its largest.
func micros(v any) time.Duration {
	const largest = time.Duration(1<<63 - 1)
	us, _ := v.(uint64)
	if us > uint64(largest/time.Microsecond) {
		return largest
	}
	return time.Duration(us) * time.Microsecond
}

// statuses reads a pair of lists, exit statuses and signals, and returns the former.
func statuses(v any) []int {
	pair, _ := v.([]any)
	if len(pair) == 0 {
		return nil
	}
	list, _ := pair[0].([]int32)
	var out []int
	for _, s := range list {
		out = append(out, int(s))
	}
	return out
}
