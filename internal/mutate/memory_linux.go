// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import "golang.org/x/sys/unix"

// limitMemory bounds the data of each process of a test program: a mutant may allocate without end.
func limitMemory(pid int) {
	const most = 4 << 30
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil) // the process may have ended
}
