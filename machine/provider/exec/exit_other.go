// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package exec

// awaitExit returns false: the end of a process is known once it is reaped.
func awaitExit(int) bool { return false }
