// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a program that a test runs. No process is forked while the file is open for writing: one that
// holds it open, if only until it executes something else, would have the program refused as "text file busy".
func WriteProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
