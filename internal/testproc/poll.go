// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import "time"

// The pause between two questions, at least and at most.
const (
	shortest = 20 * time.Millisecond
	longest  = 500 * time.Millisecond
)

// Pace is the pace of a poll for something that other processes do. The pause between two questions is a tenth of the
// time that was waited so far: the questions of many tests would otherwise take the processors from the servers whose
// answer they wait for.
type Pace struct{ began time.Time }

// NewPace begins a poll.
func NewPace() Pace { return Pace{time.Now()} }

// Next returns a channel that receives when it is time for the next question.
func (p Pace) Next() <-chan time.Time { return time.After(pauseAfter(time.Since(p.began))) }

// pauseAfter is the pause when so much time was waited.
func pauseAfter(waited time.Duration) time.Duration { return min(max(waited/10, shortest), longest) }

// Poll calls check until it returns nil, and returns its last error after that time.
func Poll(within time.Duration, check func() error) error {
	pace := NewPace()
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
		case <-pace.Next():
		}
	}
}
