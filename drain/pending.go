// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// A Finding is something that stops a drain before the cordon, or puts it off.
type Finding struct {
	Node string
	PodRef
	Reason  Reason
	Message string
}

func Preflight(s Snapshot, p Policy, now time.Time) []Finding { return nil }

// Validate checks the request.
func (r Request) Validate() error { return nil }
func (p Policy) Validate() error  { return nil }
func (s Set) Validate() error     { return nil }
