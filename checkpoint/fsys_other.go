// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package checkpoint

import (
	"errors"
	"io/fs"
)

// hostFS returns none: see errNoHost.
func hostFS() fsys { return nil }

// openNonblock is 0: such systems have no pipes in directories, or wait for them.
const openNonblock = 0

func isFull(error) bool      { return false }
func isReadOnly(error) bool  { return false }
func isGone(err error) bool  { return errors.Is(err, fs.ErrNotExist) }
func isTaken(err error) bool { return errors.Is(err, fs.ErrExist) }
func isBusy(error) bool      { return false }
func isMedia(error) bool     { return false }
func isTrap(error) bool      { return false }
