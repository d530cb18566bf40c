// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package doctor

import "errors"

// LookAtDir looks at a state directory. There is none but on Linux.
func LookAtDir(path string) *Dir { return &Dir{Path: path, Err: errors.ErrUnsupported} }

// LookAtClock looks at the clock of the machine. Only Linux tells.
func LookAtClock() *Clock { return nil }
