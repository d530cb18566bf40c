// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

// A bench is what all scenarios share.
type bench struct {
	stage   *stage.Stage
	repeats int
	quick   bool
	short   bool // a bar was missed
}

// A scenario prints its lines.
type scenario struct {
	name string
	run  func(context.Context, *bench) error
}

func scenarios() []scenario {
	return []scenario{
		{"S1", calls}, {"S2", budget}, {"S3", contention}, {"S4", wake},
		{"S5", throttled}, {"S6", killed}, {"S7", namesake}, {"S8", idle},
		{"S9", runSet}, {"S10", runSilence}, {"S11", runEasy}, {"S12", runCrowd},
	}
}

func main() {
	repeats := flag.Int("repeats", 5, "how often each side of a comparison runs")
	only := flag.String("scenario", "", "run only these, for example S1,S3")
	quick := flag.Bool("quick", false, "one repeat, fewer pods and shorter times")
	child := flag.String("child", "", "internal: drain as this side, in a process of its own")
	profile := flag.String("profile", "", "write a CPU profile of the scenarios to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *child != "" {
		if err := drainAsChild(ctx, *child, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "bench drain:", err)
			os.Exit(2)
		}
		return
	}
	b := &bench{repeats: max(1, *repeats), quick: *quick}
	if b.quick {
		b.repeats = 1
	}
	if err := b.runProfiled(ctx, *only, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench drain:", err)
		os.Exit(2)
	}
	if b.short {
		os.Exit(1)
	}
}

// runProfiled runs, and writes a CPU profile where a file is named.
func (b *bench) runProfiled(ctx context.Context, only, file string) (err error) {
	if file == "" {
		return b.run(ctx, only)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	defer pprof.StopCPUProfile()
	return b.run(ctx, only)
}

// run starts the control plane and goes through the scenarios.
func (b *bench) run(ctx context.Context, only string) (err error) {
	wanted, err := choose(only)
	if err != nil {
		return err
	}
	if b.stage, err = stage.New(ctx); err != nil {
		return err
	}
	defer func() {
		if closeErr := b.stage.Close(); err == nil {
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
