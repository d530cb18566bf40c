// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import "time"

// sight says when something that is watched is not seen any more, and when it is again.
type sight struct {
	a    *app
	last time.Time
	lost bool
}

// seen notes that it was seen now.
func (s *sight) seen() {
	if s.last = time.Now(); s.lost {
		s.a.notef("Seen again")
		s.lost = false
	}
}

// away says once for each time that it is not seen since when, and why.
func (s *sight) away(err error) {
	if !s.lost {
		s.a.notef("Not seen since %s: %s", s.last.UTC().Format("15:04:05Z"), err)
		s.lost = true
	}
}
