// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Wanted makes a probe that is shown in the status and decides nothing: all the others of Options.Probes are required.
// That of nil is nil, which is no probe.
func Wanted(p Probe) Probe {
	if p == nil {
		return nil
	}
	return optional{p}
}

// optional is a probe that is not required.
type optional struct{ Probe }

// A sickness is a required probe that fails without a break.
type sickness struct {
	probe string
	since time.Time // monotonic
}

// watches reports whether probes are asked about what runs: a config on trial, a fallback, and for a while what has proven itself.
func (s *Syncer[T]) watches(now live[T], st lkg.State) bool {
	switch {
	case st.OnTrial() || now.active.Verdict.Role != lkg.RoleCurrent:
		return true
	case s.o.WatchAfter <= 0 || now.active.Ref.IsLocal():
		return false
	default:
		return now.sick.probe != "" || time.Since(now.proven) < s.o.WatchAfter
	}
}

// noteSick takes note of the first required probe that fails, for the alarm.
func (s *Syncer[T]) noteSick(epoch int, h lkg.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live.epoch != epoch {
		return
	}
	for _, p := range h.Probes {
		if !p.Required || p.Err == nil {
			continue
		}
		if s.live.sick.probe == "" {
			s.live.sick.since = time.Now()
		}
		s.live.sick.probe = p.Name
		return
	}
	s.live.sick = sickness{}
}

// alarm says what a person must look at in a config that nothing is left to decide about: one that was promoted, or was gone back to. It is
// pure. sick is for how long the probe of that name fails; window is Options.WatchAfter.
func alarm(st lkg.State, v lkg.Verdict, l lkg.Limits, probe string, sick, window time.Duration) string {
	deadline := l.ProbeDeadline
	if deadline <= 0 {
		deadline = lkg.DefaultProbeDeadline
	}
	fails := probe != "" && sick > deadline
	switch {
	case v.Role != lkg.RoleCurrent && fails:
		return fmt.Sprintf("went back to %s, and there required probe %q fails for more than %s", lkgName(v.Use), probe, deadline)
	case v.Role != lkg.RoleCurrent, st.OnTrial(), v.Use.IsLocal(), window <= 0:
		return ""
	case fails:
		return fmt.Sprintf("%s has passed its trial, and now required probe %q fails for more than %s", lkgName(v.Use), probe, deadline)
	}
	if n := crashesSincePromotion(st, window); n > l.CrashLoopThreshold {
		return fmt.Sprintf("%s has passed its trial, and ended %d times since in ways that nothing explains", lkgName(v.Use), n)
	}
	return ""
}

// crashesSincePromotion counts the unexplained ends of runs of the last known good config, in the time after its promotion. The wall clock says
// which those are: it is for people, and decides nothing else.
func crashesSincePromotion(st lkg.State, window time.Duration) (n int) {
	r := st.LastKnownGood
	for _, s := range st.Starts {
		ran := s.After.Role == lkg.RoleCurrent && s.After.UID == r.UID && s.After.Key == r.Key && s.After.Digest == r.Digest
		after := s.At.Sub(st.PromotedAt)
		if ran && s.Good == st.GoodID && after >= 0 && after < window && (s.Cause == lkg.CauseCrash || s.Cause == lkg.CauseUnknown) {
			n++
		}
	}
	return n
}
