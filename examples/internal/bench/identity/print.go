// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A line is one figure and its bar. Empty fields are printed as "-".
type line struct {
	name, ours, peer, ratio, bar string
	good                         bool
	more                         string
}

// print prints a line. Without a bar there is no verdict either.
func (b *bench) print(l line) {
	verdict := "ok"
	switch {
	case l.bar == "":
		verdict = "-"
	case !l.good:
		verdict, b.short = "SHORT", true
	}
	dash := func(s string) string { return cmp.Or(s, "-") }
	fmt.Printf("bench identity.%s ours=%s peer=%s ratio=%s bar=%s %s", l.name, dash(l.ours), dash(l.peer), dash(l.ratio), dash(l.bar), verdict)
	if l.more != "" {
		fmt.Printf(" (%s)", l.more)
	}
	fmt.Println()
}

// figures are values of one kind: of all repeats, or of all requests.
type figures[T float64 | time.Duration] []T

// median is the lower one of an even number.
func (f figures[T]) median() T { return f.quantile(0.5) }

func (f figures[T]) most() T { return f.quantile(1) }

func (f figures[T]) least() T { return f.quantile(0) }

// quantile is the least value that at least that share of the values does not exceed; zero of no values.
func (f figures[T]) quantile(share float64) T {
	if len(f) == 0 {
		return 0
	}
	rank := int(share*float64(len(f)) + 0.999999)
	return slices.Sorted(slices.Values(f))[max(rank, 1)-1]
}

// String is the median, and the spread where there is one.
func (f figures[T]) String() string {
	if len(f) == 0 {
		return "-"
	}
	middle, first, last := show(f.median()), show(f.least()), show(f.most())
	if first != last {
		return fmt.Sprintf("%s[%s..%s]", middle, first, last)
	}
	return middle
}

// show gives durations to a hundredth of a millisecond, and other figures to three digits behind the point below 10, fewer above.
func show[T float64 | time.Duration](v T) string {
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
	return ""
}

// over is the ratio of two figures, as it is printed.
func over[T float64 | time.Duration](ours, peer T) string {
	if peer == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", float64(ours)/float64(peer))
}

// each collects one figure of all results.
func each[R any, T float64 | time.Duration](results []R, figure func(R) T) figures[T] {
	var f figures[T]
	for _, r := range results {
		f = append(f, figure(r))
	}
	return f
}
