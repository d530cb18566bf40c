// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"os"
	"testing"
)

// faultsVar says how much of the fault catalogue a test goes through: nothing = a share, "1" = what each change has to pass,
// "long" = more than that.
const faultsVar = "BELAY_FAULTS"

// amount chooses by it.
func amount(share, full, long int) int {
	switch os.Getenv(faultsVar) {
	case "":
		return share
	case "long":
		return long
	default:
		return full
	}
}

// line prints how much one row of the catalogue had, and fails where that is too little.
func line(t *testing.T, row, what string, count, bar int, more string) {
	t.Helper()
	verdict := "ok"
	if count < bar {
		verdict = "SHORT"
		t.Fail()
	}
	t.Logf("fault %s %s=%d lost=0 bar=%d %s%s", row, what, count, bar, more, verdict)
}
