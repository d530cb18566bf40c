// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package durable

import (
	"os"
	"time"
)

func openFlags(int) int { return 0 }

// lockFile is none: on such a system one process at a time replaces a file.
func lockFile(*os.File, time.Duration) error { return nil }
