// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package filesum

import (
	"io/fs"
	"syscall"
	"time"
)

// lastChange is when a file was changed last, its attributes included: a time that no program can set.
func lastChange(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}
