// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/archtest/apilist"
)

func main() {
	if err := run(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	root, err := archtest.ModuleRoot(dir)
	if err != nil {
		return err
	}
	pkgs, err := apilist.Load(ctx, root)
	if err != nil {
		return err
	}
	old, err := apilist.Read(root)
	if err != nil {
		return err
	}
	next, err := apilist.List(pkgs, old)
	if err != nil {
		return err
	}
	return apilist.Write(root, next)
}
