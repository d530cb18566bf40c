// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
)

func TestEachRunIsCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for want := 1; want <= 3; want++ {
		if n, err := countRun(t.Context(), dir); err != nil || n != want {
			t.Fatalf("got %d and error %v, want %d", n, err, want)
		}
	}
}
