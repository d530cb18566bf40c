// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// CollectorConfig is what a [Collector] does.
type CollectorConfig struct {
	// GCAfter is how long a Lease must have been quiet, counted while the view was up to date; 0 means an hour. At least twice the Liveness
	// of the view.
	GCAfter time.Duration
	// Period is the time between two passes of Run; 0 means GCAfter / 10, at least a second.
	Period time.Duration
	// MaxPerPass is how many Leases a pass deletes at most; 0 means 100.
	MaxPerPass int
	// DryRun deletes nothing and reports what would be.
	DryRun bool
	// Metrics may be the zero value.
	Metrics CollectorMetrics
}

// A Collector deletes the Leases of members that have been gone for long: those of its view, and no other.
type Collector struct{}

// NewCollector returns a Collector. leases must be of the namespace of the view's Leases; one of another namespace is never deleted.
func NewCollector(leases LeaseClient, view *View, c CollectorConfig) (*Collector, error)

// Collect makes one pass. It deletes nothing while the view is not up to date. Each deletion has the UID and the resourceVersion that were
// watched as precondition. A Lease that was renewed, deleted or forbidden meanwhile is in the report, and is no error; an error is what
// stopped the pass.
func (c *Collector) Collect(ctx context.Context) (Report, error)

// Run makes a pass each Period until ctx ends. Errors are logged and tried again at the next pass.
func (c *Collector) Run(ctx context.Context) error

// Healthy returns nil if a pass has ended without an error in the last two periods.
func (c *Collector) Healthy() error

// CollectOutcome is what came of a Lease that was due.
type CollectOutcome string

// The outcomes.
const (
	Collected    CollectOutcome = "Collected"
	WouldCollect CollectOutcome = "WouldCollect" // dry run
	Renewed      CollectOutcome = "Renewed"      // 409: another version is stored
	Gone         CollectOutcome = "Gone"         // 404
	Refused      CollectOutcome = "Refused"      // any other answer
)

// A Report is what a pass has done.
type Report struct {
	// Stale is set, and all else empty, if the view was not up to date.
	Stale bool
	// Leases are those that were due, oldest first, at most MaxPerPass; Left is how many more were due.
	Leases []CollectedLease
	Left   int
}

// A CollectedLease is one that was due.
type CollectedLease struct {
	Key     types.NamespacedName
	UID     types.UID
	Holder  string
	Quiet   time.Duration
	Outcome CollectOutcome
	// Err is the answer, if it was Refused.
	Err error
}
