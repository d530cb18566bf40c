// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package identity

import (
	"errors"
	"os"
)

func openLock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func flock(*os.File) error { return errors.ErrUnsupported }

func idOf(*os.File) (string, error) { return "", errors.ErrUnsupported }
