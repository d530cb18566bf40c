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

	mu      sync.Mutex
	seen    map[string]shown  // by rollout
	stalled map[string]string // the reason, by rollout
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

// stalls implements controller.Metrics.Stalled.
func (s *standing) stalls(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.stalled[name]; was != "" && was != reason {
		s.set.stalled.Delete(map[string]string{"domain": s.domain, "rollout": name, "reason": was})
	}
	if reason == "" {
		delete(s.stalled, name)
		return
	}
	s.set.stalled.WithLabelValues(s.domain, name, reason).Set(1)
	s.stalled[name] = reason
}

// forget takes away what is shown.
func (s *standing) forget() {
	s.mu.Lock()
	seen, stalled := slices.Collect(maps.Keys(s.seen)), slices.Collect(maps.Keys(s.stalled))
	s.mu.Unlock()
	for _, name := range seen {
		s.show(name, "", rollout.Counts{}, nil)
	}
	for _, name := range stalled {
		s.stalls(name, "")
	}
}
