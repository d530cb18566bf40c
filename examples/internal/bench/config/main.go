// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/bench/runner"
)

type bench struct{ runner.Bench }

func main() {
	b := &bench{runner.Bench{Area: "config", Repeats: 20}}
	os.Exit(b.Main("five adoptions and rollbacks, and ten seconds of rest", b.run, noChild))
}

func noChild(_ context.Context, name string, _ []string) error {
	return fmt.Errorf("there is no process %q", name)
}

func (b *bench) run(ctx context.Context) error {
	if b.Quick {
		b.Repeats = 5
	}
	ctx = klog.NewContext(ctx, klog.Logger{}) // the client library has much to say of servers that are closed
	return b.Run(ctx, []runner.Scenario{{Name: "C1", Run: b.latencies}, {Name: "C2", Run: b.decisions}})
}
