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

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/bench/runner"
)

// A bench has the programs that are measured as processes of their own.
type bench struct {
	runner.Bench
	agent, controller, bare string
	dir                     string
	agents, nodes           int
	repose                  *repose // F2, from its beginning on
}

func main() {
	b := &bench{Bench: runner.Bench{Area: "fleet", Repeats: 9}} // a machine that is used up is not twice the same
	flag.StringVar(&b.agent, "agent", "", "program of examples/agent, for F2")
	flag.StringVar(&b.controller, "controller", "", "program of examples/controller, for F3")
	flag.StringVar(&b.bare, "bare", "", "program of examples/internal/bench/fleet/bare, for F2")
	flag.StringVar(&b.dir, "dir", "", "directory that agents write to; empty means one in memory for F1, and the one for temporary files for the others")
	flag.IntVar(&b.agents, "agents", 0, "how many agents F1 has; 0 means 1,000, or 100 with -quick")
	flag.IntVar(&b.nodes, "nodes", 0, "how many nodes F3 has; 0 means 5,000, or 500 with -quick")
	os.Exit(b.Main("100 agents, a controller with 500 nodes, and shorter times", b.run, child))
}

// child is a process that this one has started.
func child(_ context.Context, name string, _ []string) error {
	if name == paceKeeper {
		return keepPace()
	}
	return fmt.Errorf("there is no process %q", name)
}

func (b *bench) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(klog.NewContext(ctx, klog.Logger{})) // the client library has much to say of servers that are closed
	defer stop()
	err := b.Run(ctx, []runner.Scenario{{Name: "F1", Run: b.adoptions}, {Name: "F1.shared", Run: b.sharing}, {Name: "F2", Run: b.rest}, {Name: "F3", Run: b.control}})
	if err != nil {
		stop() // F2 need not rest any longer
	}
	return errors.Join(err, b.rested())
}
