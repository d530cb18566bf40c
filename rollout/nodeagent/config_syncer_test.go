// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// words is a codec whose configs are single words, with a trial of two minutes.
type words struct{}

// Decode implements configsync.Codec.
func (words) Decode(key string, o configsync.Object) (string, lkg.Limits, error) {
	return o.Data[key], lkg.Limits{Trial: 2 * time.Minute, MinHealthyRun: time.Minute, ProbeDeadline: time.Hour}, nil
}

// Validate implements configsync.Validator.
func (words) Validate(_ context.Context, word string) error {
	if strings.HasPrefix(word, "wrong") {
		return errors.New("word must not be wrong")
	}
	return nil
}

// Inspect implements configsync.Inspector, as a program would that proves a config before it is adopted.
func (words) Inspect(_ context.Context, key string, o configsync.Object) error {
	if strings.HasPrefix(o.Data[key], "unproven") {
		return errors.New("the program refuses it")
	}
	return nil
}

// steered is a world whose updater is a real config syncer, with everything in memory. Configs whose word begins with "crash" crash what they
// configure, "sick" ones fail its probe, "wrong" ones are not valid, and "unproven" ones are refused by what proves them.
type steered struct {
	*world
	server *configsynctest.Server
	syncer *configsync.Steered[string]
	child  *configsynctest.Child[string]
	// lateFrom is when configs whose word is "late" stop to crash.
	lateFrom time.Time
}

func newSteered(t *testing.T) *steered {
	t.Helper()
	s := &steered{world: newWorld(t), server: &configsynctest.Server{}}
	s.child = &configsynctest.Child[string]{Conduct: func(word string) (c configsynctest.Conduct) {
		if strings.HasPrefix(word, "crash") || word == "late" && time.Now().Before(s.lateFrom) {
			c.CrashAfter = 2 * time.Second
		}
		if strings.HasPrefix(word, "sick") {
			c.Sick = errors.New("healthz says 500")
		}
		return c
	}}
	var err error
	s.syncer, err = configsync.NewSteered(t.Context(), configsync.Options[string]{
		Version: "v1", Key: "word", Codec: words{}, Default: func() string { return "default" }, BootID: "boot-1",
		Store: &configsynctest.Disk{}, Fetcher: s.server, Restarter: s.child,
		Validators: []configsync.Validator[string]{words{}}, Proofs: []configsync.Inspector{words{}},
	}, configsync.InNamespace("configs"))
	if err != nil {
		t.Fatal(err)
	}
	s.live()
	s.o.Updater = updaterOf(t, nodeagent.Config{Syncer: s.syncer, Boot: func() (string, error) { return "boot-1", nil }})
	s.o.RevertBroken = true
	s.start()
	s.passes(time.Minute)
	return s
}

// live runs the syncer and what it configures until the end of the test.
func (s *steered) live() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 2)
	go func() { ended <- s.child.Run(ctx, s.syncer.Syncer) }()
	synctest.Wait()
	go func() { ended <- s.syncer.Run(ctx) }()
	synctest.Wait()
	s.t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				s.t.Errorf("the syncer has ended with %v", err)
			}
		}
	})
}

// config puts a config there, and names its revision.
func (s *steered) config(name, word string) protocol.Revision {
	o := s.server.Put("configs", name, map[string]string{"word": word}, true)
	return protocol.Revision{Name: name, Digest: o.Digest()}
}

// wants checks how an attempt has ended, and what the node runs.
func (s *steered) wants(phase protocol.Phase, reason string, current protocol.Revision) {
	s.t.Helper()
	s.wantPhase(phase)
	s.wantReason(reason)
	s.want("current", s.status().Current, current)
	inUse, _, _, err := s.syncer.Configs(s.t.Context())
	s.want("in use", inUse, strings.TrimPrefix(current.String(), "local"))
	s.want("error", err, nil)
}

// wantListed checks that a config is listed as bad, and for what.
func (s *steered) wantListed(config protocol.Revision, reason string) {
	s.t.Helper()
	_, bad, why, err := s.syncer.Judge(s.t.Context(), config.String())
	if !bad || err != nil || !strings.Contains(why, reason) {
		s.t.Errorf("config %s is bad: %t, %q, %v; want it listed for %q", config, bad, why, err, reason)
	}
}

// R-RO-21, R-RO-26: a node goes through configs by a real syncer: a good one after its trial, back from one that crashes and one that is never well, and
// back to an older one, each as its attempt says.
func TestRolloutOfConfigs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		local := protocol.Revision{Name: "local"}
		s.want("current", s.status().Current, local)
		good, crashing, sick := s.config("one", "good"), s.config("two", "crash"), s.config("three", "sick")
		s.roll(good, false)
		s.wantPhase(protocol.PhaseDone)
		if ok, bad, why, err := s.syncer.Judge(t.Context(), good.String()); !ok || bad || err != nil {
			t.Errorf("the config that was rolled out: good %t, bad %t, %s, %v, want it good", ok, bad, why, err)
		}
		s.roll(crashing, false)
		s.wants(protocol.PhaseFailedClean, "FellBack", good)
		s.roll(crashing, false)
		s.wants(protocol.PhaseFailedClean, "ApplyFailed", good) // it is listed
		s.roll(sick, false)
		s.wants(protocol.PhaseFailedClean, "OnTrial", good)
		s.wantListed(sick, "the rollout goes back")
		next := s.config("four", "good, too")
		s.roll(next, false)
		s.wantPhase(protocol.PhaseDone)
		s.roll(good, false)
		s.wants(protocol.PhaseDone, "", good)
		s.roll(local, false)
		s.wants(protocol.PhaseDone, "", local)
	})
}

// R-RO-26: a config that is left because it crashes, while it is not known whether it is to blame, keeps its attempt
// open until the node has tried it once more. What made it crash is over by then: the attempt is done.
func TestAttemptOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		good, late := s.config("one", "good"), s.config("two", "late")
		s.roll(good, false)
		s.lateFrom = time.Now().Add(40 * time.Second)
		s.grant(late, false)
		s.passes(time.Minute)
		s.proceed()
		s.passes(20 * time.Second)
		s.wantPhase(protocol.PhaseVerifying)
		s.wantReason("Suspected")
		s.want("current", s.status().Current, good)
		s.passes(time.Hour)
		s.wants(protocol.PhaseDone, "", late)
	})
}

// R-RO-26: an attempt whose time is over while its config is under suspicion ends that: the node does not try the config
// again outside of an attempt, and does not list it, as it is not known to be bad.
func TestAttemptEndsASuspicion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		good, crashing := s.config("one", "good"), s.config("two", "crash")
		s.roll(good, false)
		s.o.VerifyFor, s.o.VerifyWithin = time.Second, 20*time.Second
		s.start()
		s.grant(crashing, false)
		s.passes(time.Minute)
		s.proceed()
		s.passes(3 * time.Minute)
		s.wants(protocol.PhaseFailedClean, "Suspected", good)
		if _, bad, why, err := s.syncer.Judge(t.Context(), crashing.String()); bad || err != nil {
			t.Errorf("the suspect is listed: %q, %v", why, err)
		}
		starts := len(s.child.Starts())
		s.passes(time.Hour)
		s.want("starts after the attempt", len(s.child.Starts()), starts)
	})
}

// R-RO-26: without a way back of its own an attempt whose time is over while its config is under suspicion leaves a
// broken node, until the node itself has found that the config is bad.
func TestSuspicionOutlivesAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		good, crashing := s.config("one", "good"), s.config("two", "crash")
		s.roll(good, false)
		s.o.VerifyFor, s.o.VerifyWithin, s.o.RevertBroken = time.Second, 20*time.Second, false
		s.start()
		s.grant(crashing, false)
		s.passes(time.Minute)
		s.proceed()
		s.passes(30 * time.Second)
		s.wantPhase(protocol.PhaseFailedBroken)
		s.passes(10 * time.Minute)
		s.wants(protocol.PhaseFailedClean, "Suspected", good)
		s.wantListed(crashing, "crash loop")
	})
}

// R-RO-09: a config that nobody can get in time is given up: it is not taken up when it is there, outside of an attempt.
func TestConfigThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		good := s.config("one", "good")
		s.roll(good, false)
		late := s.config("two", "good, and late")
		s.server.Down(true)
		s.roll(late, false)
		s.wants(protocol.PhaseFailedClean, "TimedOut", good)
		s.server.Down(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		s.passes(time.Minute)
		s.wants(protocol.PhaseFailedClean, "TimedOut", good)
	})
}

// A configUpdater is what [nodeagent.Config] makes.
type configUpdater interface {
	nodeagent.Updater
	nodeagent.Preflighter
	nodeagent.Disrupter
}

func updaterOf(t *testing.T, c nodeagent.Config) configUpdater {
	t.Helper()
	u, err := c.NewUpdater()
	if err != nil {
		t.Fatal(err)
	}
	all, ok := u.(configUpdater)
	if !ok {
		t.Fatalf("%T is no Preflighter or Disrupter", u)
	}
	return all
}
