// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
)

var _ configsync.Restarter = restart.Exit{}

// R-CS-38: the zero value exits with 0, as the specification says. C-07: the code can be another where a unit asks for
// one. Nothing here exits the process: this test goes on. L-CS-07, L-CS-23.
func TestExitCarriesItsCodeToMain(t *testing.T) {
	for code := range 3 {
		err := fmt.Errorf("running: %w", errors.Join(errors.New("other"), restart.Exit{Code: code}.Restart(t.Context(), adopt)))
		var exit *restart.ExitError
		if !errors.As(err, &exit) || exit.Change != adopt || restart.Code(err) != code {
			t.Errorf("Code(%v) = %d, want %d and the change", err, restart.Code(err), code)
		}
	}
	change := configsync.Change{Kind: configsync.RollBack, Why: "it crashed"}
	want := "exit with code 3 to take up another config: it crashed"
	if err := (restart.Exit{Code: 3}).Restart(t.Context(), change); err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestCodeOfOtherEnds(t *testing.T) {
	if got := restart.Code(nil); got != 0 {
		t.Errorf("Code(nil) = %d, want 0", got)
	}
	if got := restart.Code(errors.New("broken")); got != 1 {
		t.Errorf("Code of another error = %d, want 1", got)
	}
}
