// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Figures are values of one kind: of all repeats, or of all requests.
type Figures[T int | float64 | time.Duration] []T

// Median is the lower one of an even number.
func (f Figures[T]) Median() T { return f.Quantile(0.5) }

// Most and Least are the ends.
func (f Figures[T]) Most() T { return f.Quantile(1) }

// Least is the least value.
func (f Figures[T]) Least() T { return f.Quantile(0) }

// Quantile is the least value that at least that share of the values does not exceed; zero of no values.
func (f Figures[T]) Quantile(share float64) T {
	if len(f) == 0 {
		return 0
	}
	rank := int(share*float64(len(f)) + 0.999999)
	return slices.Sorted(slices.Values(f))[max(rank, 1)-1]
}

// String is the median, and the spread where there is one.
func (f Figures[T]) String() string {
	if len(f) == 0 {
		return "-"
	}
	middle, first, last := Show(f.Median()), Show(f.Least()), Show(f.Most())
	if first != last {
		return fmt.Sprintf("%s[%s..%s]", middle, first, last)
	}
	return middle
}

// Show gives durations up to 100 ms to a hundredth of a millisecond, longer ones to a millisecond, and other figures to three digits behind the
// point below 10, fewer above.
func Show[T int | float64 | time.Duration](v T) string {
	switch v := any(v).(type) {
	case time.Duration:
		if v > 100*time.Millisecond {
			return v.Round(time.Millisecond).String()
		}
		return v.Round(10 * time.Microsecond).String()
	case float64:
		digits := 3
		if v >= 100 {
			digits = 0
		} else if v >= 10 {
			digits = 1
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	return fmt.Sprint(v)
}

// Each collects one figure of all results.
func Each[R any, T int | float64 | time.Duration](results []R, figure func(R) T) Figures[T] {
	var f Figures[T]
	for _, r := range results {
		f = append(f, figure(r))
	}
	return f
}

// Over is the ratio of two figures, as it is printed; empty where it is of nothing.
func Over[T int | float64 | time.Duration](ours, peer T) string {
	if peer == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", float64(ours)/float64(peer))
}
