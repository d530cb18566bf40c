// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"fmt"
	"slices"
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

// needsHealth reports whether something depends on health reports: a probe, a config that is on trial, under suspicion
// or in place of another one, trouble with the store, or ends of runs that a healthy run would forgive.
func (s *Syncer[T]) needsHealth() bool {
	now, st := s.snapshot(), s.tracker.State()
	if len(s.o.Probes) > 0 || now.run.needsProof() || now.storage != nil || !now.recorded || now.active.Verdict.Role != lkg.RoleCurrent {
		return true
	}
	return st.OnTrial() || st.Case != nil || slices.ContainsFunc(st.Starts, func(start lkg.Start) bool {
		return !start.Settled && start.Good == st.GoodID && start.After.Role != "" && start.Cause == lkg.CauseCrash
	})
}

// noteSick takes note of the first required probe that fails, for the alarm. A probe that can't tell changes nothing.
func (s *Syncer[T]) noteSick(epoch int, h lkg.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live.epoch != epoch {
		return
	}
	known := true
	for _, p := range h.Probes {
		known = known && !(p.Required && p.Unknown)
		if !p.Required || p.Err == nil || p.Unknown {
			continue
		}
		if s.live.sick.probe == "" {
			s.live.sick.since = time.Now()
		}
		s.live.sick.probe = p.Name
		return
	}
	if known {
		s.live.sick = sickness{}
	}
}

// alarm says what a person must look at: required probes that fail where nothing is left to fall back to, or where
// going back did not help. It is pure. sick is for how long the probe of that name fails.
func alarm(st lkg.State, v lkg.Verdict, l lkg.Limits, probe string, sick time.Duration) string {
	deadline := l.ProbeDeadline
	if deadline <= 0 {
		deadline = (lkg.Bounds{}).Clamp(l).ProbeDeadline // the default
	}
	switch {
	case probe == "" || sick <= deadline:
		return ""
	case v.Role != lkg.RoleCurrent:
		return fmt.Sprintf("went back to %s, and there required probe %q fails for more than %s",
			lkgName(v.Use), probe, deadline)
	case v.Use.IsLocal():
		return fmt.Sprintf("required probe %q fails for more than %s, and nothing is left to fall back to", probe, deadline)
	case st.Case != nil:
		return fmt.Sprintf("required probe %q fails for more than %s, with this config and with what is below it",
			probe, deadline)
	}
	return ""
}
