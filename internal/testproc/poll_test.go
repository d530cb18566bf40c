// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPollAsksLessAndLess shows that a poll asks often at first and seldom later, tells the last error in time, and
// ends with the first success.
func TestPollAsksLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), []time.Duration{}
		want := errors.New("not yet")
		err := Poll(time.Minute, func() error { asked = append(asked, time.Since(began)); return want })
		if !errors.Is(err, want) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s, want the last error after a minute", err, time.Since(began))
		}
		soon, late := 0, 0
		for _, at := range asked {
			if at < time.Second {
				soon++
			}
			if at >= 50*time.Second {
				late++
			}
		}
		if soon < 20 || late < 15 || late > 21 {
			t.Errorf("asked %d times in the first second and %d times in the last ten, want 20 or more, and 20", soon, late)
		}
		calls := 0
		err = Poll(time.Minute, func() error { calls++; return map[bool]error{true: want}[calls < 3] })
		if err != nil || calls != 3 {
			t.Errorf("got %v after %d questions, want nil after 3", err, calls)
		}
	})
}
