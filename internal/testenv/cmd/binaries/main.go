// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/belayproject/belay/internal/testenv/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "belay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	names := binaries.All()
	if len(args) > 0 {
		names = nil
	}
	for _, arg := range args {
		names = append(names, binaries.Name(arg))
	}
	for _, name := range names {
		set, err := binaries.Ensure(ctx, os.Stderr, name)
		if err != nil {
			return err
		}
		fmt.Println(set[name])
	}
	return nil
}
