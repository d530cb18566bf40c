// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package file

import (
	"errors"
	"fmt"
	"runtime"
)

func lock(string) (func() error, error) {
	return nil, fmt.Errorf("machines in files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
