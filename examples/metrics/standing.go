// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/belayproject/belay/rollout"
)

// standing has the gauges that say how the rollouts of one domain stand, so that outdated ones can be removed.
type standing struct {
	of     *Rollout
	domain string

	mu      sync.Mutex
	shown   map[string]shown  // by rollout
	stalled map[string]string // the reason, by rollout
}

// shown is what was set for a rollout.
type shown struct {
	phase   rollout.Phase
	reasons []rollout.Reason
}

// statesOf are the counts of nodes by state.
func statesOf(c rollout.Counts) map[string]int {
	return map[string]int{
		"Done": c.Done, "InFlight": c.InFlight, "Waiting": c.Waiting, "Deferred": c.Deferred,
		"Failed": c.Failed, "Broken": c.Broken, "Lost": c.Lost,
	}
}

// setRollout implements controller.Metrics.Rollout.
func (s *standing) setRollout(
	name string, phase rollout.Phase, counts rollout.Counts, waiting map[rollout.Reason]int,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.shown[name]
	if before.phase != "" && before.phase != phase {
		s.of.phase.DeleteLabelValues(s.domain, name, string(before.phase))
	}
	for _, r := range before.reasons {
		if _, still := waiting[r]; !still {
			s.of.waiting.DeleteLabelValues(s.domain, name, string(r))
		}
	}
	if phase == "" {
		for state := range statesOf(counts) {
			s.of.nodes.DeleteLabelValues(s.domain, name, state)
		}
		delete(s.shown, name)
		return
	}
	s.of.phase.WithLabelValues(s.domain, name, string(phase)).Set(1)
	for state, n := range statesOf(counts) {
		s.of.nodes.WithLabelValues(s.domain, name, state).Set(float64(n))
	}
	for reason, n := range waiting {
		s.of.waiting.WithLabelValues(s.domain, name, string(reason)).Set(float64(n))
	}
	s.shown[name] = shown{phase: phase, reasons: slices.Collect(maps.Keys(waiting))}
}

// setStalled implements controller.Metrics.Stalled.
func (s *standing) setStalled(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.stalled[name]; before != "" && before != reason {
		s.of.stalled.DeleteLabelValues(s.domain, name, before)
	}
	if reason == "" {
		delete(s.stalled, name)
		return
	}
	s.of.stalled.WithLabelValues(s.domain, name, reason).Set(1)
	s.stalled[name] = reason
}

// removeAll removes all gauges of the domain.
func (s *standing) removeAll() {
	s.mu.Lock()
	rollouts, stalled := slices.Collect(maps.Keys(s.shown)), slices.Collect(maps.Keys(s.stalled))
	s.mu.Unlock()
	for _, name := range rollouts {
		s.setRollout(name, "", rollout.Counts{}, nil)
	}
	for _, name := range stalled {
		s.setStalled(name, "")
	}
}
