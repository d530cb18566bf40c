// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/compat"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// A syncer takes a second to restart what it configures, and finds v2 to be what its fields say.
type syncer struct {
	mu          sync.Mutex // its timers and its callers
	inUse, good string
	suspect     string
	bad         string // a config that turns out to be bad when it is in use
	verdict     map[string]bool
	log         []string
}

// Configs implements nodeagent.ConfigSyncer.
func (s *syncer) Configs(context.Context) (inUse, lastKnownGood, suspect string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == "none" {
		return "", "", "", errBoom
	}
	return s.inUse, s.good, s.suspect, nil
}

// Adopt implements nodeagent.ConfigSyncer.
func (s *syncer) Adopt(_ context.Context, config string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "adopt "+config)
	if good, known := s.verdict[config]; known && !good {
		return fmt.Errorf("config %q is listed as bad", config)
	}
	s.later(time.Second, func() { s.inUse = config })
	if s.bad != "" && config == s.bad {
		s.later(2*time.Second, func() { s.verdict[config] = false; s.inUse = s.good })
	}
	return nil
}

// Judge implements nodeagent.ConfigSyncer.
func (s *syncer) Judge(_ context.Context, config string) (good, bad bool, why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, known := s.verdict[config]
	return known && ok, known && !ok, "as it was set", nil
}

// GoBack implements nodeagent.ConfigSyncer.
func (s *syncer) GoBack(_ context.Context, config, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "leave "+config)
	s.verdict[config] = false
	s.later(time.Second, func() { s.inUse = s.good })
	return nil
}

func (s *syncer) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	})
}

// configWorld is a world whose updater is a config syncer.
func configWorld(t *testing.T) (*world, *syncer) {
	w := newWorld(t)
	s := &syncer{inUse: v1.String(), good: v1.String(), verdict: map[string]bool{v1.String(): true}}
	w.o.Updater = updaterOf(t, nodeagent.Config{Syncer: s, Boot: func() (string, error) { return "boot-1", nil }})
	w.o.RevertBroken = true
	w.start()
	w.passes(time.Minute)
	return w, s
}

func (w *world) roll(to protocol.Revision, revert bool) {
	w.t.Helper()
	w.grant(to, revert)
	w.passes(time.Minute)
	w.proceed()
	w.passes(time.Hour)
}

// A config is adopted, and is good when the syncer's own trial says so: nothing is promoted ahead of it.
func TestConfigIsRolledOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := configWorld(t)
		w.grant(v2, false)
		w.passes(time.Minute)
		w.proceed()
		w.passes(5 * time.Minute)
		w.wantPhase(protocol.PhaseVerifying)
		w.wantReason("OnTrial")
		s.verdict[v2.String()], s.good = true, v2.String()
		w.passes(2 * time.Minute)
		w.wantPhase(protocol.PhaseDone)
		w.want("calls", s.log, []string{"adopt " + v2.String()})
	})
}

// A config that the syncer finds to be bad, and leaves by itself, is a clean failure with its reason.
func TestBadConfig(t *testing.T) {
	bubble(t, "on its trial", func(t *testing.T) {
		w, s := configWorld(t)
		s.bad = v2.String()
		w.roll(v2, false)
		w.wantPhase(protocol.PhaseFailedClean)
		w.want("current", w.status().Current, v1)
	})
	bubble(t, "before", func(t *testing.T) {
		w, s := configWorld(t)
		s.verdict[v2.String()] = false
		w.roll(v2, false)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("ApplyFailed")
	})
	bubble(t, "found while it is taken up", func(t *testing.T) {
		_, s := configWorld(t)
		s.verdict["v9"] = true
		s.later(1500*time.Millisecond, func() { s.verdict["v9"] = false })
		c := updaterOf(t, nodeagent.Config{Syncer: stuck{s}})
		err := c.Apply(t.Context(), nodeagent.Attempt{Revision: protocol.Revision{Name: "v9"}})
		named, ok := compat.AsType[interface {
			error
			Why() (string, string)
		}](err)
		if !ok {
			t.Fatalf("got error %v, want one that names its reason", err)
		}
		if reason, _ := named.Why(); reason != "ConfigBad" {
			t.Errorf("got reason %q, want %q", reason, "ConfigBad")
		}
	})
}

// stuck is a syncer that takes no config up.
type stuck struct{ *syncer }

// Adopt implements nodeagent.ConfigSyncer.
func (stuck) Adopt(context.Context, string) error { return nil }

// absent is a syncer that can't ask its server for a while.
type absent struct {
	*syncer
	until time.Time
	asked int
}

type noAnswerError struct{ temporary bool }

func (noAnswerError) Error() string     { return "no answer" }
func (e noAnswerError) Temporary() bool { return e.temporary }

// Adopt implements nodeagent.ConfigSyncer.
func (s *absent) Adopt(ctx context.Context, config string) error {
	if s.asked++; time.Now().Before(s.until) {
		return fmt.Errorf("asking: %w", noAnswerError{temporary: true})
	}
	return s.syncer.Adopt(ctx, config)
}

// A server that is away while a config is taken up is waited for, as long as an attempt has, and asked ever more seldom; it fails no node. The way back waits,
// too. Any other error ends the attempt at once.
func TestServerAwayWhileAConfigIsAdopted(t *testing.T) {
	for _, c := range []struct {
		name   string
		inUse  protocol.Revision
		to     protocol.Revision
		revert bool
	}{
		{"for a while", v1, v2, false},
		{"on the way back", v2, protocol.Revision{Name: "v0"}, true},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w, s := configWorld(t)
			s.inUse, s.verdict[c.to.String()] = c.inUse.String(), true
			away := &absent{syncer: s, until: time.Now().Add(20 * time.Minute)}
			w.o.Updater = updaterOf(t, nodeagent.Config{Syncer: away, Boot: func() (string, error) { return "boot-1", nil }})
			w.start()
			w.passes(time.Minute)
			w.roll(c.to, c.revert)
			w.wantPhase(protocol.PhaseDone)
			w.want("calls", s.log, []string{"adopt " + c.to.String()})
			if most := 20*60/4 + 4; away.asked < 17*60/8 || away.asked > most {
				t.Errorf("asked %d times in 20 minutes, want each 4 to 8 s: %d at most", away.asked, most)
			}
		})
	}
	bubble(t, "for good", func(t *testing.T) {
		w, s := configWorld(t)
		w.o.Updater = updaterOf(t, nodeagent.Config{Syncer: &absent{syncer: s, until: time.Now().Add(24 * time.Hour)}, Boot: func() (string, error) { return "boot-1", nil }})
		w.start()
		w.roll(v2, false)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("TimedOut")
		if got := w.status().Message; !strings.Contains(got, "no answer") {
			t.Errorf("got message %q, want what was in the way", got)
		}
	})
	for _, err := range []error{errBoom, noAnswerError{}} {
		c := updaterOf(t, nodeagent.Config{Syncer: failing{&syncer{}, err}})
		if got := c.Apply(t.Context(), nodeagent.Attempt{Revision: v2}); !errors.Is(got, err) {
			t.Errorf("got %v, want %v at once", got, err)
		}
	}
}

// failing is a syncer that adopts nothing.
type failing struct {
	*syncer
	err error
}

// Adopt implements nodeagent.ConfigSyncer.
func (s failing) Adopt(context.Context, string) error { return s.err }

// A way back is to the last known good config by the syncer's own way, and to another one, the local one even, by adopting it.
func TestConfigGoesBack(t *testing.T) {
	for _, c := range []struct {
		name string
		to   protocol.Revision
		want string
	}{
		{"to the last known good one", v1, "leave " + v2.String()},
		{"to an older one", protocol.Revision{Name: "v0"}, "adopt v0"},
		{"to the local one", protocol.Revision{Name: "local"}, "adopt "},
	} {
		bubble(t, c.name, func(t *testing.T) {
			w, s := configWorld(t)
			s.inUse = v2.String()
			w.passes(time.Minute)
			s.verdict["v0"], s.verdict[""] = true, true
			w.roll(c.to, true)
			w.wantPhase(protocol.PhaseDone)
			w.want("calls", s.log, []string{c.want})
			w.want("current", w.status().Current, c.to)
		})
	}
}

// A config that stays on trial beyond the bound is left, where the policy says so. An apply that comes to no end ends with its deadline.
func TestConfigBounds(t *testing.T) {
	bubble(t, "trial", func(t *testing.T) {
		w, s := configWorld(t)
		w.roll(v2, false)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("OnTrial")
		w.want("calls", s.log, []string{"adopt " + v2.String(), "leave " + v2.String()})
	})
	bubble(t, "apply", func(t *testing.T) {
		w, s := configWorld(t)
		w.o.Updater = updaterOf(t, nodeagent.Config{Syncer: stuck{s}, Boot: func() (string, error) { return "boot-1", nil }})
		w.start()
		w.roll(v2, false)
		w.wantPhase(protocol.PhaseFailedClean)
		w.wantReason("TimedOut")
	})
	bubble(t, "nothing in use", func(t *testing.T) {
		w, s := configWorld(t)
		s.inUse = "none"
		if _, err := w.pass(); !errors.Is(err, errBoom) {
			t.Errorf("got error %v, want the syncer's", err)
		}
	})
}

// A check of a config that is not in use fails.
func TestConfigNotInUse(t *testing.T) {
	s := &syncer{inUse: v1.String(), verdict: map[string]bool{v1.String(): true}}
	h, err := updaterOf(t, nodeagent.Config{Syncer: s}).Verify(t.Context(), nodeagent.Attempt{Revision: v2})
	if err != nil || h.Verdict != nodeagent.Fail || h.Reason != "NotInUse" {
		t.Errorf("got %+v, %v, want a failure: NotInUse", h, err)
	}
}
