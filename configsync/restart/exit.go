// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"

	"github.com/belayproject/belay/configsync"
)

// Exit is a Restarter for a process that takes up a config by being started again. It ends Syncer.Run with an
// [*ExitError]; the main function stops its work and exits with [Code].
//
// The zero value exits with code 0. systemd starts such a process again under Restart=always only: under
// Restart=on-failure use a code other than 0, or the node stays down.
type Exit struct {
	// Code is the exit code, 0 to 125.
	Code int
}

// Restart returns an [*ExitError].
func (e Exit) Restart(_ context.Context, c configsync.Change) error {
	return &ExitError{Code: e.Code, Change: c}
}

// An ExitError asks the main function to exit, so that the process is started again with another config.
type ExitError struct {
	// Code is the exit code asked for.
	Code int
	// Change is why.
	Change configsync.Change
}

// Error says what is asked for and why.
func (e *ExitError) Error() string {
	return fmt.Sprintf("exit with code %d to take up another config: %s", e.Code, e.Change.Why)
}

// Code returns the exit code for the error that Syncer.Run returned: 0 for nil, that of an [*ExitError] in its chain,
// and otherwise 1.
func Code(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	default:
		return 1
	}
}
