// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// R-DR-14: a held node's Lease is renewed on time whatever the passes of another holder over the node wait for: neither the beginning of the
// hold nor any renewal waits for them.
func TestHoldIsNotDelayedByAnotherHolder(t *testing.T) {
	for name, fault := range map[string]draintest.Fault{
		"evictions": draintest.Always(draintest.Evict, draintest.TimeoutBefore(40*time.Second)),
		"listing":   draintest.Always(draintest.ListPods, draintest.TimeoutBefore(40*time.Second)),
	} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			if name == "evictions" {
				s.web("web", 20, "n1")
			}
			s.c.Faults(fault)
			other := s.request("", func(r *drain.Request) { r.Holder, r.Policy.Settle = "other", new(time.Duration) })
			s.run(other, "n1")
			s.sleep(10 * time.Second)
			began := time.Now()
			s.keep(s.hold(time.Hour))
			s.sleep(time.Second)
			s.c.StopKubelet("n1")
			if lost := s.pulseLost(10 * time.Minute); lost > 0 {
				t.Errorf("%s: got node n1 lost for %s of 10m, want it Ready all the time", name, lost)
			}
			last := time.Duration(0)
			for _, at := range s.renewals(began) {
				if at-last > 10*time.Second {
					t.Errorf("%s: got no renewal between %s and %s, want one each 10s", name, last, at)
				}
				last = at
			}
			if last < 9*time.Minute {
				t.Errorf("%s: got the last renewal after %s, want them to go on", name, last)
			}
			s.c.ClearFaults()
			s.sleep(time.Minute) // for the answers under way
		})
	}
}
