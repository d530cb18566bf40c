// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package filesum

import (
	"io/fs"
	"time"
)

// lastChange is when the content of a file was changed last.
func lastChange(info fs.FileInfo) time.Time { return info.ModTime() }
