// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/belayproject/belay/internal/bench/runner"
)

type bench struct{ runner.Bench }

func main() {
	b := &bench{runner.Bench{Area: "rollout", Repeats: 5}}
	os.Exit(b.Main("one repeat, and fewer rollouts", b.run, noChild))
}

func (b *bench) run(ctx context.Context) error {
	return b.Run(ctx, []runner.Scenario{{Name: "R3", Run: b.plan}, {Name: "R7", Run: b.detectors}})
}

func noChild(_ context.Context, name string, _ []string) error {
	return fmt.Errorf("there is no process %q", name)
}
