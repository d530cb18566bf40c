// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "time"

// Limits of one config's trial. They travel next to the payload, so that each config brings its own.
// The zero value is usable: every zero field but CrashLoopThreshold stands for its default.
type Limits struct {
	// Trial is how much healthy time a config needs before it can become the last known good one.
	// Zero means [DefaultTrial].
	Trial time.Duration
	// CrashLoopThreshold is how many unexplained restarts during the trial are tolerated, 0 to 10. One more
	// rejects the config. The start that adopts a config is never counted.
	CrashLoopThreshold int
	// MinHealthyRun is how long the run that earns the promotion must itself have been healthy, without a break.
	// Zero means [DefaultMinHealthyRun]. A value above Trial means Trial.
	MinHealthyRun time.Duration
	// ProbeDeadline is how long a required probe may fail without a break during the trial before the config is
	// rejected. Zero means [DefaultProbeDeadline].
	ProbeDeadline time.Duration
}

// The defaults of [Limits] and the range of a threshold.
const (
	DefaultTrial          = 10 * time.Minute
	DefaultMinHealthyRun  = time.Minute
	DefaultProbeDeadline  = 5 * time.Minute
	MaxCrashLoopThreshold = 10
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

// Validate says which field is out of range. Errors are [*FieldError]s: a negative duration, or a threshold outside 0
// to 10.
func (l Limits) Validate() error { return nil }

// Validate says which bound makes no sense: a negative one, MinTrial above MaxTrial, or a threshold above 10.
func (b Bounds) Validate() error { return nil }

// Clamp gives l with defaults filled in and every field brought within the bounds.
func (b Bounds) Clamp(l Limits) Limits { return l }
