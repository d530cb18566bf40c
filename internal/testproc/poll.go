// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import "time"

// pause is the time between two questions.
const pause = 20 * time.Millisecond

// Poll calls check until it returns nil, and returns its last error after that time.
func Poll(within time.Duration, check func() error) error {
	again := time.NewTicker(pause)
	defer again.Stop()
	end := time.NewTimer(within)
	defer end.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-end.C:
			return err
		case <-again.C:
		}
	}
}
