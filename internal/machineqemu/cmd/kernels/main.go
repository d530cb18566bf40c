// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/belayproject/belay/internal/machineqemu"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := machineqemu.FetchKernels(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "belay:", err)
		os.Exit(1)
	}
}
