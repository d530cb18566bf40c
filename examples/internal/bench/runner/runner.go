// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// A Bench is what the scenarios of one area share.
type Bench struct {
	// Area is the first word of each line's name.
	Area string
	// Repeats is how often each side of a comparison runs: what -repeats says, else what it was before [Bench.Main]; once with -quick.
	Repeats int
	// Quick asks for fewer and shorter.
	Quick bool

	only  string
	short bool // a bar was missed
}

// A Scenario prints its lines.
type Scenario struct {
	Name string
	Run  func(context.Context) error
}

// Main parses the flags and calls run, or child in a process that a scenario has started with -child=NAME ARGS. It returns the exit code: 1 where
// a bar was missed, 2 after an error.
func (b *Bench) Main(quick string, run func(context.Context) error, child func(ctx context.Context, name string, args []string) error) int {
	flag.IntVar(&b.Repeats, "repeats", b.Repeats, "how often each side of a comparison runs")
	flag.StringVar(&b.only, "scenario", "", "run only these, for example S1,S3")
	flag.BoolVar(&b.Quick, "quick", false, quick)
	as := flag.String("child", "", "internal: be this process, for a parent that measures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *as != "" {
		if err := child(ctx, *as, flag.Args()); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s, %s: %v\n", b.Area, *as, err)
			return 2
		}
		return 0
	}
	if b.Repeats = max(1, b.Repeats); b.Quick {
		b.Repeats = 1
	}
	switch err := run(ctx); {
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", b.Area, err)
		return 2
	case b.short:
		return 1
	}
	return 0
}

// Run goes through those of the scenarios that are asked for.
func (b *Bench) Run(ctx context.Context, all []Scenario) error {
	wanted := all
	if b.only != "" {
		wanted = nil
		for name := range strings.SplitSeq(b.only, ",") {
			i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
			if i < 0 {
				return fmt.Errorf("there is no scenario %q", name)
			}
			wanted = append(wanted, all[i])
		}
	}
	for _, s := range wanted {
		if err := s.Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// A Line is one figure and its bar. Empty fields are printed as "-".
type Line struct {
	Name, Ours, Peer, Ratio, Bar string
	// Good says that the bar is reached. Without a bar there is no verdict.
	Good bool
	// More says what was measured.
	More string
}

// Print prints a line.
func (b *Bench) Print(l Line) {
	verdict := "ok"
	switch {
	case l.Bar == "":
		verdict = "-"
	case !l.Good:
		verdict, b.short = "SHORT", true
	}
	dash := func(s string) string { return cmp.Or(s, "-") }
	fmt.Printf("bench %s.%s ours=%s peer=%s ratio=%s bar=%s %s", b.Area, l.Name, dash(l.Ours), dash(l.Peer), dash(l.Ratio), dash(l.Bar), verdict)
	if l.More != "" {
		fmt.Printf(" (%s)", l.More)
	}
	fmt.Println()
}
