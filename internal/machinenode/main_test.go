// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/belayproject/belay/internal/machinenode"
)

// The first process of a machine is this program again.
func TestMain(m *testing.M) {
	if os.Getenv(machinenode.RepositoryVariable) == "" {
		os.Exit(m.Run())
	}
	if err := machinenode.Boot(); err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
