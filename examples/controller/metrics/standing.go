// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/belayproject/belay/rollout"
)

// standing shows how the rollouts of a domain stand, and takes away what is not so any more.
type standing struct {
	set    *Set
	domain string

	mu   sync.Mutex
	seen map[string]shown // by rollout
}

// shown is what was set for a rollout.
type shown struct {
	phase   rollout.Phase
	reasons []rollout.Reason
}

// show implements controller.Metrics.Rollout.
func (s *standing) show(name string, phase rollout.Phase, counts rollout.Counts, waiting map[rollout.Reason]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen[name]
	if was.phase != "" && was.phase != phase {
		s.set.phase.Delete(map[string]string{"domain": s.domain, "rollout": name, "phase": string(was.phase)})
	}
	for _, r := range was.reasons {
		if _, still := waiting[r]; !still {
			s.set.waiting.Delete(map[string]string{"domain": s.domain, "rollout": name, "reason": string(r)})
		}
	}
	states := map[string]int{
		"Done": counts.Done, "InFlight": counts.InFlight, "Waiting": counts.Waiting, "Deferred": counts.Deferred,
		"Failed": counts.Failed, "Broken": counts.Broken, "Lost": counts.Lost,
	}
	if phase == "" {
		for state := range states {
			s.set.nodes.Delete(map[string]string{"domain": s.domain, "rollout": name, "state": state})
		}
		delete(s.seen, name)
		return
	}
	s.set.phase.WithLabelValues(s.domain, name, string(phase)).Set(1)
	for state, n := range states {
		s.set.nodes.WithLabelValues(s.domain, name, state).Set(float64(n))
	}
	for reason, n := range waiting {
		s.set.waiting.WithLabelValues(s.domain, name, string(reason)).Set(float64(n))
	}
	s.seen[name] = shown{phase: phase, reasons: slices.Collect(maps.Keys(waiting))}
}
