// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/configsync/restart"
)

// The wanted config is used by the second life, and a config that breaks a rule by none.
func TestWantedConfigIsUsed(t *testing.T) {
	state, wanted := filepath.Join(t.TempDir(), "state"), t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(wanted, "config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("workers: 8\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var used []int
	live := func() error {
		return run(ctx, state, wanted, func(c Config) {
			if used = append(used, c.Workers); len(used) > 1 {
				cancel()
			}
		})
	}
	if err := live(); restart.Code(err) != 75 {
		t.Fatalf("the first life ends with %v, want a restart", err)
	}
	write("workers: 0\n")
	if err := live(); err != nil {
		t.Fatalf("the second life ends with %v", err)
	}
	if len(used) != 2 || used[0] != 1 || used[1] != 8 {
		t.Errorf("used are %v, want 1 and then 8", used)
	}
}
