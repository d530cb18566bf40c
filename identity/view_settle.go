// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import "strconv"

// A lister is a Source that knows how far its last list or watch has come, as an informer does.
type lister interface {
	LastSyncResourceVersion() string
}

// A settling waits for the end of the list of which a version of the canary's Lease may have been. A Source that is a lister says up to which
// version it has come, which is no less than that of the list. What is newer was delivered after the list, and ends the wait. Where the
// Source says nothing, or versions are no numbers, the next write of the canary does it.
type settling struct {
	source lister
	canary uint64 // the version that was seen; 0 while nothing is waited for
	upTo   uint64 // less than canary until the Source has said it
}

// begin waits for the end of the list that may have brought this version.
func (s *settling) begin(version string) {
	s.canary, s.upTo = 0, 0
	if s.source != nil {
		s.canary = numbered(version)
		s.upTo = numbered(s.source.LastSyncResourceVersion())
	}
}

// over says, once, whether the list is over, as this version of another Lease was seen.
func (s *settling) over(version string) bool {
	switch {
	case s.canary == 0:
		return false
	case s.upTo < s.canary: // the Source tells its handlers before it says so
		s.upTo = numbered(s.source.LastSyncResourceVersion())
		return false
	case numbered(version) <= s.upTo:
		return false
	}
	s.canary = 0
	return true
}

// numbered is a version as a number, 0 if it is none.
func numbered(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
