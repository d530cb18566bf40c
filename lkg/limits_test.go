// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// TestThresholdIsZeroToTen: R-CS-49.
func TestThresholdIsZeroToTen(t *testing.T) {
	for threshold, ok := range map[int]bool{-1: false, 0: true, 1: true, 10: true, 11: false, math.MaxInt: false} {
		err := lkg.Limits{CrashLoopThreshold: threshold}.Validate()
		if (err == nil) != ok {
			t.Errorf("threshold %d: %v", threshold, err)
		}
		if ok {
			continue
		}
		var field *lkg.FieldError
		if !errors.As(err, &field) || !errors.Is(err, lkg.ErrInvalid) || field.Field != "crashLoopThreshold" {
			t.Errorf("threshold %d: %v, want a FieldError about crashLoopThreshold", threshold, err)
		}
	}
}

func TestInvalidLimitsNameTheField(t *testing.T) {
	for want, check := range map[string]func() error{
		"trial":                 lkg.Limits{Trial: -1}.Validate,
		"minHealthyRun":         lkg.Limits{MinHealthyRun: -1}.Validate,
		"probeDeadline":         lkg.Limits{ProbeDeadline: -1}.Validate,
		"minTrial":              lkg.Bounds{MinTrial: time.Hour, MaxTrial: time.Minute}.Validate,
		"maxTrial":              lkg.Bounds{MaxTrial: -1}.Validate,
		"maxProbeDeadline":      lkg.Bounds{MaxProbeDeadline: -1}.Validate,
		"maxCrashLoopThreshold": lkg.Bounds{MaxCrashLoopThreshold: 11}.Validate,
	} {
		var field *lkg.FieldError
		if err := check(); !errors.As(err, &field) || field.Field != want || field.Want == "" {
			t.Errorf("got %v, want a FieldError about %q", err, want)
		}
	}
	if err := (lkg.Bounds{}).Validate(); err != nil {
		t.Errorf("zero bounds: %v", err)
	}
	if err := (lkg.Bounds{MinTrial: time.Minute, MaxTrial: time.Hour, MaxCrashLoopThreshold: 3}).Validate(); err != nil {
		t.Errorf("sensible bounds: %v", err)
	}
}

// TestClampKeepsWithinBounds: what a config asks for is brought within the bounds of the operator.
func TestClampKeepsWithinBounds(t *testing.T) {
	defaults := lkg.Limits{
		Trial: lkg.DefaultTrial, MinHealthyRun: lkg.DefaultMinHealthyRun, ProbeDeadline: lkg.DefaultProbeDeadline,
	}
	tight := lkg.Bounds{
		MinTrial: time.Minute, MaxTrial: time.Hour, MinHealthyRun: 2 * time.Minute, MaxProbeDeadline: time.Minute,
		MaxCrashLoopThreshold: 3,
	}
	for _, c := range []struct {
		name      string
		b         lkg.Bounds
		got, want lkg.Limits
	}{
		{"zero is the default", lkg.Bounds{}, lkg.Limits{}, defaults},
		{
			"nonsense is the default", lkg.Bounds{},
			lkg.Limits{Trial: -1, CrashLoopThreshold: -5, MinHealthyRun: -1, ProbeDeadline: -1}, defaults,
		},
		{"a run is not longer than the trial", lkg.Bounds{},
			lkg.Limits{Trial: 5 * time.Second, MinHealthyRun: time.Hour, ProbeDeadline: time.Second, CrashLoopThreshold: 99},
			lkg.Limits{
				Trial: 5 * time.Second, MinHealthyRun: 5 * time.Second, ProbeDeadline: time.Second, CrashLoopThreshold: 10,
			}},
		{"too much", tight, lkg.Limits{Trial: 24 * time.Hour, CrashLoopThreshold: 10},
			lkg.Limits{Trial: time.Hour, CrashLoopThreshold: 3, MinHealthyRun: 10 * time.Minute, ProbeDeadline: time.Minute}},
		{"too little", tight, lkg.Limits{Trial: time.Second, MinHealthyRun: time.Second},
			lkg.Limits{Trial: time.Minute, MinHealthyRun: time.Minute, ProbeDeadline: time.Minute}},
		{"a run that is too short", tight, lkg.Limits{Trial: time.Hour, MinHealthyRun: time.Second},
			lkg.Limits{Trial: time.Hour, MinHealthyRun: 2 * time.Minute, ProbeDeadline: time.Minute}},
		{
			"not below a second", lkg.Bounds{}, lkg.Limits{Trial: 1},
			lkg.Limits{Trial: time.Second, MinHealthyRun: 1, ProbeDeadline: lkg.DefaultProbeDeadline},
		},
	} {
		if got := c.b.Clamp(c.got); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
