// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestRun: outside of the repository there is nothing to list.
func TestRun(t *testing.T) {
	if err := run(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder outside of the repository is taken")
	}
}
