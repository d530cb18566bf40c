// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

// longest is the longest backoff: whatever has happened, the world may have changed since.
const longest = 10 * time.Minute

// backoffLimits is how long to wait after the first failure, and at most.
type backoffLimits struct{ base, most time.Duration }

// backoffs is the table in the documentation of the package.
var backoffs = map[Class]backoffLimits{
	InvalidConfig: {time.Minute, longest},
	Unauthorized:  {30 * time.Second, longest},
	Stockout:      {30 * time.Second, longest},
	RateLimited:   {5 * time.Second, 5 * time.Minute},
	Conflict:      {10 * time.Second, longest},
	Unavailable:   {time.Second, 2 * time.Minute},
	NotSupported:  {5 * time.Minute, longest},
	NotFound:      {time.Second, time.Minute},
	Internal:      {2 * time.Second, 5 * time.Minute},
}

// Backoff returns how long to wait after a call has failed that often in a row with this class: the base of the class, doubled with each try up to its
// most, and never more than ten minutes. Unknown classes wait as [Internal] does, and "", which is no error, not at all. Jitter is the caller's.
// What an error asks for itself counts as well: max(AfterOf(err), ClassOf(err).Backoff(tries)).
func (c Class) Backoff(tries int) time.Duration {
	if c == "" {
		return 0
	}
	b := backoffs[known(c)]
	return backoff.After(tries-1, b.base, b.most)
}

// RetryElsewhere reports whether the same machine may be possible in another zone or with another config: after a [Stockout] alone.
func RetryElsewhere(c Class) bool { return c == Stockout }
