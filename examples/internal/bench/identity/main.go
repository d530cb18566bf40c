// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

// A bench is what all scenarios share.
type bench struct {
	repeats int
	quick   bool
	short   bool // a bar was missed

	shared   *world              // nil until a scenario needs it
	steadies map[string][]steady // of I1 and I2, by side
	burdens  map[string]burden   // of I3 and I4, by cell
}

// A scenario prints its lines.
type scenario struct {
	name string
	run  func(context.Context, *bench) error
}

func scenarios() []scenario {
	return []scenario{
		{"I1", requests}, {"I2", octets}, {"I3", load}, {"I4", watching}, {"I5", detection}, {"I6", policy}, {"I7", restart},
	}
}

func main() {
	repeats := flag.Int("repeats", 2, "how often each side of a comparison runs")
	only := flag.String("scenario", "", "run only these, for example I1,I3")
	quick := flag.Bool("quick", false, "one repeat, fewer members and shorter times")
	child := flag.String("child", "", "internal: be this process, for a parent that measures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = klog.NewContext(ctx, klog.Logger{}) // thousands of members have much to say
	if *child != "" {
		if err := beChild(ctx, *child, flag.Args()); err != nil {
			fmt.Fprintf(os.Stderr, "bench identity, %s: %v\n", *child, err)
			os.Exit(2)
		}
		return
	}
	b := &bench{repeats: max(1, *repeats), quick: *quick, steadies: map[string][]steady{}, burdens: map[string]burden{}}
	if b.quick {
		b.repeats = 1
	}
	if err := b.run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench identity:", err)
		os.Exit(2)
	}
	if b.short {
		os.Exit(1)
	}
}

// run goes through the scenarios.
func (b *bench) run(ctx context.Context, only string) (err error) {
	wanted, err := choose(only)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := b.drop(); err == nil {
			err = closeErr
		}
	}()
	for _, s := range wanted {
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func choose(only string) ([]scenario, error) {
	all := scenarios()
	if only == "" {
		return all, nil
	}
	var wanted []scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		wanted = append(wanted, all[i])
	}
	return wanted, nil
}

// world is the control plane that scenarios share.
func (b *bench) world(ctx context.Context) (*world, error) {
	if b.shared != nil {
		return b.shared, nil
	}
	w, err := newWorld(ctx)
	b.shared = w
	return w, err
}

// drop ends the control plane that scenarios share. The next that asks gets another.
func (b *bench) drop() error {
	if b.shared == nil {
		return nil
	}
	w := b.shared
	b.shared = nil
	return w.Close()
}
