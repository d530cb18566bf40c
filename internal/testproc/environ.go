// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Environ is the environment of a process, in the file that /proc has of it; empty if it has ended. While a program is being started in the process, that is
// empty and does not yet tell whose it is, so that it is read again then, for a second at most.
func Environ(file string) (environ []byte) {
	_ = Poll(time.Second, func() error { // whose it is stays unknown where that takes longer
		var err error
		if environ, err = os.ReadFile(file); err != nil || len(environ) > 0 {
			return nil //nolint:nilerr // it may have ended
		}
		if stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat")); err == nil && unready(string(stat)) {
			return fmt.Errorf("a program is being started in %s", filepath.Dir(file))
		}
		return nil
	})
	return environ
}

// unready says whether a process, as /proc shows its state, has memory and the kernel has not yet said where in it the environment ends.
func unready(stat string) bool {
	const vsize, envEnd = 23 - 3, 51 - 3                                // as proc(5) counts them, less those up to the name and from one
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name may hold anything
	return len(fields) > envEnd && fields[vsize] != "0" && fields[envEnd] == "0"
}
