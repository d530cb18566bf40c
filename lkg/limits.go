// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"errors"
	"strconv"
	"time"
)

// Limits of one config's trial. They travel next to the payload, so that each config brings its own.
// The zero value is usable: every zero field but CrashLoopThreshold stands for its default.
type Limits struct {
	// Trial is how much healthy time a config needs before it can become the last known good one. It is added up over
	// restarts, and begins anew with each start that counts against the config. Zero means [DefaultTrial].
	Trial time.Duration
	// CrashLoopThreshold is how many unexplained restarts during the trial are tolerated, 0 to 10. With one more the
	// config is left. The start that adopts a config is never counted.
	CrashLoopThreshold int
	// MinHealthyRun is how long the run that earns the promotion must itself have been healthy, without a break. A config
	// that takes the machine down, or crashes where nobody sees it, is never promoted if it lives for less than that.
	// Zero means 10 minutes. A value above Trial means Trial.
	MinHealthyRun time.Duration
	// ProbeDeadline is how long a required probe may fail without a break before the config is left, on trial and later.
	// Zero means 5 minutes.
	ProbeDeadline time.Duration
}

// The defaults of [Limits] and the range of a threshold.
const (
	DefaultTrial          = 10 * time.Minute
	defaultMinHealthyRun  = 10 * time.Minute
	defaultProbeDeadline  = 5 * time.Minute
	MaxCrashLoopThreshold = 10

	// fallbackThreshold is how many unexplained restarts are tolerated at least while a config is used as a fallback. It
	// has proven itself before, and what is below it is older still: a config that tolerates none of them on trial is not
	// given up for a single one here.
	fallbackThreshold = 3
)

// The defaults of Bounds.
const (
	defaultMinTrial         = time.Second
	defaultMaxTrial         = 30 * 24 * time.Hour
	defaultMaxProbeDeadline = 24 * time.Hour
)

// Bounds are what the operator of the node allows, whatever a config asks for. A zero field stands for the
// default that it names.
type Bounds struct {
	// MinTrial and MaxTrial bound Limits.Trial. Zero means one second, and 30 days.
	MinTrial, MaxTrial time.Duration
	// MinHealthyRun is the least value of Limits.MinHealthyRun. Zero means no bound.
	MinHealthyRun time.Duration
	// MaxProbeDeadline bounds Limits.ProbeDeadline. Zero means one day.
	MaxProbeDeadline time.Duration
	// MaxCrashLoopThreshold bounds Limits.CrashLoopThreshold. Zero means 10.
	MaxCrashLoopThreshold int
}

// Validate says which field is out of range. Errors wrap [ErrInvalid]: a negative duration, or a threshold outside 0
// to 10.
func (l Limits) Validate() error {
	if l.CrashLoopThreshold < 0 || l.CrashLoopThreshold > MaxCrashLoopThreshold {
		return &fieldError{"crashLoopThreshold", strconv.Itoa(l.CrashLoopThreshold), "must be between 0 and 10"}
	}
	return errors.Join(notNegative("trial", l.Trial), notNegative("minHealthyRun", l.MinHealthyRun),
		notNegative("probeDeadline", l.ProbeDeadline))
}

// effective fills in the defaults. Values that Validate refuses become the nearest safe ones.
func (l Limits) effective() Limits {
	l.Trial = positive(l.Trial, DefaultTrial)
	l.MinHealthyRun = min(positive(l.MinHealthyRun, defaultMinHealthyRun), l.Trial)
	l.ProbeDeadline = positive(l.ProbeDeadline, defaultProbeDeadline)
	l.CrashLoopThreshold = min(max(l.CrashLoopThreshold, 0), MaxCrashLoopThreshold)
	return l
}

// Validate says which bound makes no sense: a negative one, MinTrial above MaxTrial, or a threshold above 10.
func (b Bounds) Validate() error {
	if b.MaxCrashLoopThreshold < 0 || b.MaxCrashLoopThreshold > MaxCrashLoopThreshold {
		return &fieldError{"maxCrashLoopThreshold", strconv.Itoa(b.MaxCrashLoopThreshold), "must be between 0 and 10"}
	}
	err := errors.Join(notNegative("minTrial", b.MinTrial), notNegative("maxTrial", b.MaxTrial),
		notNegative("minHealthyRun", b.MinHealthyRun), notNegative("maxProbeDeadline", b.MaxProbeDeadline))
	if err != nil {
		return err
	}
	if e := b.effective(); e.MinTrial > e.MaxTrial {
		return &fieldError{"minTrial", e.MinTrial.String(), "must not be above maxTrial, which is " + e.MaxTrial.String()}
	}
	return nil
}

func (b Bounds) effective() Bounds {
	b.MinTrial = positive(b.MinTrial, defaultMinTrial)
	b.MaxTrial = positive(b.MaxTrial, defaultMaxTrial)
	b.MaxProbeDeadline = positive(b.MaxProbeDeadline, defaultMaxProbeDeadline)
	if b.MaxCrashLoopThreshold <= 0 || b.MaxCrashLoopThreshold > MaxCrashLoopThreshold {
		b.MaxCrashLoopThreshold = MaxCrashLoopThreshold
	}
	return b
}

// Clamp gives l with defaults filled in and every field brought within the bounds. A healthy run is never longer than
// the trial.
func (b Bounds) Clamp(l Limits) Limits {
	b, l = b.effective(), l.effective()
	l.Trial = min(max(l.Trial, b.MinTrial), b.MaxTrial)
	l.MinHealthyRun = min(max(l.MinHealthyRun, b.MinHealthyRun), l.Trial)
	l.ProbeDeadline = min(l.ProbeDeadline, b.MaxProbeDeadline)
	l.CrashLoopThreshold = min(l.CrashLoopThreshold, b.MaxCrashLoopThreshold)
	return l
}

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

func notNegative(field string, d time.Duration) error {
	if d < 0 {
		return &fieldError{field, d.String(), "must not be negative"}
	}
	return nil
}
