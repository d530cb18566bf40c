// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package providertest

import (
	"errors"
	"os"
)

func lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }
