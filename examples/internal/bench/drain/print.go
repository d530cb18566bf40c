// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A line is one figure and its bar. Empty fields are printed as "-".
type line struct {
	name, ours, peer, ratio, bar string
	good                         bool
	more                         string
}

func (b *bench) print(l line) {
	verdict := "ok"
	if !l.good {
		verdict, b.short = "SHORT", true
	}
	dash := func(s string) string { return cmp.Or(s, "-") }
	fmt.Printf("bench drain.%s ours=%s peer=%s ratio=%s bar=%s %s", l.name, dash(l.ours), dash(l.peer), dash(l.ratio), dash(l.bar), verdict)
	if l.more != "" {
		fmt.Printf(" (%s)", l.more)
	}
	fmt.Println()
}

// figures are the values of all repeats.
type figures[T int | float64 | time.Duration] []T

func (f figures[T]) sorted() []T { return slices.Sorted(slices.Values(f)) }

// median is the lower one of an even number.
func (f figures[T]) median() T { return f.quantile(0.5) }

func (f figures[T]) most() T { return f.quantile(1) }

// quantile is the least value that at least that share of the values does not exceed; zero of no values.
func (f figures[T]) quantile(share float64) T {
	if len(f) == 0 {
		return 0
	}
	rank := int(share*float64(len(f)) + 0.999999)
	return f.sorted()[max(rank, 1)-1]
}

// String is the median, and the spread where there is one.
func (f figures[T]) String() string {
	if len(f) == 0 {
		return "-"
	}
	s := f.sorted()
	if first, last := s[0], s[len(s)-1]; first != last {
		return fmt.Sprintf("%s[%s..%s]", show(f.median()), show(first), show(last))
	}
	return show(f.median())
}

func show[T int | float64 | time.Duration](v T) string {
	switch v := any(v).(type) {
	case time.Duration:
		return v.Round(time.Millisecond).String()
	case float64:
		return fmt.Sprintf("%.3f", v)
	default:
		return fmt.Sprint(v)
	}
}

// each collects one figure of all results.
func each[T int | float64 | time.Duration](results []result, figure func(result) T) figures[T] {
	var f figures[T]
	for _, r := range results {
		f = append(f, figure(r))
	}
	return f
}

// ratio compares two medians.
func ratio[T int | float64 | time.Duration](ours, peer figures[T]) float64 {
	if peer.median() == 0 {
		return 0
	}
	return float64(ours.median()) / float64(peer.median())
}
