// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

// hostFS refuses: the promises were tested on Linux only, and a rename and an fsync do not mean the same everywhere.
func hostFS() (fsys, error) {
	return nil, fmt.Errorf("a store on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func isFull(error) bool      { return false }
func isReadOnly(error) bool  { return false }
func isGone(err error) bool  { return errors.Is(err, fs.ErrNotExist) }
func isTaken(err error) bool { return errors.Is(err, fs.ErrExist) }
func isBusy(error) bool      { return false }
func isMedia(error) bool     { return false }
func isTrap(error) bool      { return false }
