// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// SchedulerOptions limits what a process asks of the API server. The zero value is meant for production.
type SchedulerOptions struct {
	// Rate is how many evictions a second may start, over all nodes; zero means 20. Burst is how many at once; zero means 40.
	Rate  float64
	Burst int
	// InFlight is how many evictions may be under way at once; zero means 32. PerBudget is the same for one budget, which is also
	// never more than it allows; zero means 16.
	InFlight  int
	PerBudget int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Scheduler shares the right to evict among all drains of a process: a token bucket, a bound for evictions under way, for each
// budget what it allows less what has been spent, nodes with the fewest pods left first, and a global back-off when the
// server is overloaded. It keeps nothing that has to survive.
type Scheduler struct {
	o SchedulerOptions
}

// NewScheduler checks the options and returns a Scheduler.
func NewScheduler(o SchedulerOptions) (*Scheduler, error) { return &Scheduler{o: o}, errNotYet }
