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
	Taken   LossReason = "Taken"   // another holder is in the Lease
	Deleted LossReason = "Deleted" // the Lease was not there
)

// ViewMetrics is called by a [View]. Each field may be nil.
type ViewMetrics struct {
	// Peers is called after each change with the number of peers in each state.
	Peers func(byState map[State]int)
	// Fresh is called when the view becomes up to date, or ceases to be.
	Fresh func(fresh bool)
	// Brake is called when the mass-loss brake takes hold or lets go.
	Brake func(on bool)
	// Detected is called for each loss with how long the peer had been quiet.
	Detected func(quiet time.Duration)
}

// CollectorMetrics is called by a [Collector]. Each field may be nil.
type CollectorMetrics struct {
	// Collected is called for each Lease that was due, with what came of it.
	Collected func(outcome CollectOutcome)
}
