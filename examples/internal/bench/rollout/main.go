// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/rolloutstage"
)

type bench struct{ runner.Bench }

func main() {
	if code, child := rolloutstage.Main(); child {
		os.Exit(code)
	}
	b := &bench{runner.Bench{Area: "rollout", Repeats: 5}}
	os.Exit(b.Main("one repeat, fewer nodes, rollouts and aborts, and shorter times", b.run, noChild))
}

func (b *bench) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // the client library has much to say of servers that are closed
	return b.Run(ctx, []runner.Scenario{
		{Name: "R1", Run: b.calls}, {Name: "R1.config", Run: b.configCalls}, {Name: "R2", Run: b.idle}, {Name: "R3", Run: b.plan}, {Name: "R4", Run: b.latency},
		{Name: "R5", Run: b.leader}, {Name: "R6", Run: b.abort}, {Name: "R7", Run: b.detectors},
	})
}

func noChild(_ context.Context, name string, _ []string) error {
	return fmt.Errorf("there is no process %q", name)
}
