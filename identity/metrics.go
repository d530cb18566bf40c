// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import "time"

// MemberMetrics is called by a [Member]. Each field may be nil. No label holds a name or a holder: the number of series is fixed.
type MemberMetrics struct {
	// Request is called for each answer: operation is Get, Create, Update or Delete; code the HTTP status, 0 without an answer.
	Request func(operation string, code int, took time.Duration)
	// Held is called with true when the Lease is acquired and with false when it is lost or released.
	Held func(held bool)
	// Lost is called with the reason of each loss: Expired, Taken or Deleted.
	Lost func(reason LossReason)
}

// LossReason is why a hold ended before its time.
type LossReason string

// The reasons of a loss.
const (
	Expired LossReason = "Expired" // no renewal succeeded for Timing.Hold
	Taken   LossReason = "Taken"   // another holder is in the Lease, or none
	Deleted LossReason = "Deleted" // the Lease was not there
)

func (m MemberMetrics) request(operation string, code int, took time.Duration) {
	if m.Request != nil {
		m.Request(operation, code, took)
	}
}

func (m MemberMetrics) held(held bool) {
	if m.Held != nil {
		m.Held(held)
	}
}

func (m MemberMetrics) lost(reason LossReason) {
	if m.Lost != nil {
		m.Lost(reason)
	}
}
