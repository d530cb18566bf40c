// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// crashLoop starts the machine n times, and each run ends badly.
func crashLoop(m *lkgtest.Machine, n int) {
	for range n {
		m.Start()
		m.Crash()
	}
}

// bootLoop starts the machine n times, and each run ends with a boot.
func bootLoop(m *lkgtest.Machine, n int) {
	for range n {
		m.Start()
		m.Reboot()
	}
}

// runFor lets a run be healthy, and restarts it where the rule asks for that.
func runFor(m *lkgtest.Machine, d time.Duration) {
	const step = 10 * time.Second
	for ; d > 0; d -= step {
		if p := m.Healthy(step); p.Result == lkg.ResultRestart || p.Result == lkg.ResultRejected {
			m.Restart(lkg.CauseAdoption)
			m.Start()
		}
	}
}

// silent lets the runtime be away for d: the probes give no answer.
func silent(m *lkgtest.Machine, d time.Duration) {
	const step = 10 * time.Second
	h := lkg.Health{Elapsed: step, Probes: []lkg.ProbeResult{{Name: "runtime", Below: true, Err: errors.New("away")}}}
	for ; d > 0; d -= step {
		m.Step(step)
		m.Do("Healthy", func(ctx context.Context, tr lkgtest.Tracker) error {
			_, err := tr.Healthy(ctx, h)
			return err
		})
	}
}

// suspected gives a machine on which b is under suspicion, with a below it.
func suspected(t *testing.T) *lkgtest.Machine {
	t.Helper()
	m := lkgtest.NewMachine(t, options())
	m.Adopt(a)
	m.Start()
	m.Healthy(70 * time.Second)
	m.Adopt(b)
	crashLoop(m, 3)
	return m
}

// triedAgain gives a machine on which a has lived below the suspect b, so that b is used at the next start.
func triedAgain(t *testing.T) *lkgtest.Machine {
	t.Helper()
	m := suspected(t)
	m.Start()
	m.Healthy(40 * time.Second)
	m.Restart(lkg.CauseAdoption)
	return m
}

// nothingLived gives a machine that uses b, promoted after a, once more: each config has crashed, the local one too.
func nothingLived(t *testing.T) *lkgtest.Machine {
	t.Helper()
	m := promotedTwice(t)
	crashLoop(m, 4)
	for !m.Start().Use.Same(b) {
		m.Crash()
	}
	return m
}

// promotedTwice gives a machine on which b was promoted after a.
func promotedTwice(t *testing.T) *lkgtest.Machine {
	t.Helper()
	m := lkgtest.NewMachine(t, options())
	for _, r := range []lkg.Ref{a, b} {
		m.Adopt(r)
		m.Start()
		m.Healthy(70 * time.Second)
	}
	m.Restart(lkg.CausePlanned)
	return m
}

// found are stories that histories with outages told, made short: what runs in the end, and whether b is listed as bad.
var found = []struct {
	name   string
	play   func(t *testing.T) *lkgtest.Machine
	use    lkg.Ref
	listed bool
}{
	{"the suspect takes the machine down when it is tried again", func(t *testing.T) *lkgtest.Machine {
		m := triedAgain(t)
		bootLoop(m, 4)
		m.Start() // what lives below is asked again: it was a witness of crashes
		m.Healthy(4 * time.Minute)
		m.Restart(lkg.CauseAdoption)
		bootLoop(m, 4)
		return m
	}, a, true},
	{"the agent dies with the suspect when it is tried again, and with all below it", func(t *testing.T) *lkgtest.Machine {
		m, agentDies := triedAgain(t), ended(lkg.FaultSupervisor)
		for range 4 + 2 + 2 {
			m.Start()
			agentDies(m)
		}
		return m
	}, b, false},
	{"the suspect crashes, and takes the machine down, when it is tried again", func(t *testing.T) *lkgtest.Machine {
		m := triedAgain(t)
		crashLoop(m, 2)
		bootLoop(m, 4)
		return m
	}, a, false},
	{"the machine goes down after healthy runs in which the runtime was away", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for range 4 {
			m.Start()
			m.Healthy(25 * time.Second)
			silent(m, 70*time.Second)
			m.Healthy(25 * time.Second)
			m.Reboot()
		}
		return m
	}, b, false},
	{"one that takes the agent down now and then lives where nothing lived", func(t *testing.T) *lkgtest.Machine {
		m, agentDies := nothingLived(t), ended(lkg.FaultSupervisor)
		m.Adopt(c)
		for range 2 {
			m.Start()
			m.Healthy(10 * time.Second)
			agentDies(m)
		}
		m.Start()
		m.Healthy(35 * time.Second)
		m.Crash()
		for range 2 {
			m.Start()
			m.Healthy(10 * time.Second)
			agentDies(m)
		}
		return m
	}, b, false},
	{"one that crashes now and then lives where nothing lived", func(t *testing.T) *lkgtest.Machine {
		m := nothingLived(t)
		m.Adopt(c)
		crashLoop(m, 2)
		m.Start()
		m.Healthy(35 * time.Second)
		m.Crash()
		return m
	}, b, false},
	{"boots after an outage in which nothing lived", func(t *testing.T) *lkgtest.Machine {
		m := suspected(t)
		crashLoop(m, 40)
		for !m.Start().Use.Same(b) {
			m.Crash()
		}
		for range 4 {
			m.Reboot()
			m.Start()
		}
		m.Reboot()
		return m
	}, a, false},
	{"the agent dies with it after an outage in which nothing lived", func(t *testing.T) *lkgtest.Machine {
		m := lkgtest.NewMachine(t, options())
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		agentDies := ended(lkg.FaultSupervisor)
		for m.Start().Use.Same(b) {
			agentDies(m)
		}
		m.Crash()
		for !m.Start().Use.Same(b) {
			m.Crash()
		}
		for range 3 {
			agentDies(m)
			m.Start()
		}
		agentDies(m)
		return m
	}, a, false},
	{"a promoted config takes the machine down", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		bootLoop(m, 4)
		return m
	}, a, false},
	{"a promoted config takes the agent down", func(t *testing.T) *lkgtest.Machine {
		m, agentDies := promotedTwice(t), ended(lkg.FaultSupervisor)
		for range 4 {
			m.Start()
			agentDies(m)
		}
		return m
	}, a, false},
	{"a machine that is rebooted now and then", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for range 40 {
			m.Start()
			m.Healthy(20 * time.Minute)
			m.Reboot()
		}
		return m
	}, b, false},
	{"what is below has crashed long before the agent dies", func(t *testing.T) *lkgtest.Machine {
		m, agentDies := lkgtest.NewMachine(t, options()), ended(lkg.FaultSupervisor)
		crashLoop(m, 5)
		m.Adopt(b)
		for range 4 {
			m.Start()
			agentDies(m)
		}
		return m
	}, lkg.Ref{}, false},
	{"the suspect crashes when it is tried again for its boots", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		bootLoop(m, 4)
		m.Start()
		m.Healthy(10 * time.Minute)
		m.Restart(lkg.CauseAdoption)
		crashLoop(m, 4)
		return m
	}, a, true},
	{"a promoted config lives for longer than its trial between two crashes", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for range 4 {
			m.Start()
			m.Healthy(100 * time.Second)
			m.Crash()
		}
		return m
	}, a, false},
	{"a probe of what runs below fails now and then", func(t *testing.T) *lkgtest.Machine {
		m := suspected(t)
		m.Start()
		for range 8 {
			m.Healthy(20 * time.Second)
			m.Failing(10 * time.Second)
		}
		m.Restart(lkg.CauseAdoption)
		return m
	}, b, false},
	{"what is no config ends each run after 25 minutes", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for i := 0; !m.Start().Use.Same(b) || i < 40; i++ {
			runFor(m, 25*time.Minute)
			m.Crash()
		}
		m.Restart(lkg.CausePlanned)
		return m
	}, b, false},
	{"a crash a day, and a planned restart each 50 minutes", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for range 8 {
			for range 28 {
				m.Start()
				runFor(m, 50*time.Minute)
				m.Restart(lkg.CausePlanned)
			}
			m.Start()
			m.Crash()
		}
		return m
	}, b, false},
	{"a crash a day, and a probe that fails once in 20 minutes", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		for range 8 {
			m.Start()
			for range 72 {
				runFor(m, 20*time.Minute)
				m.Failing(10 * time.Second)
			}
			m.Crash()
		}
		return m
	}, b, false},
	{"the probe of what runs below fails for as long as that of the suspect", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		m.Start()
		for range 30 {
			runFor(m, 20*time.Second)
			if p := m.Failing(40 * time.Second); p.Result == lkg.ResultRestart || p.Result == lkg.ResultRejected {
				m.Restart(lkg.CauseAdoption)
				m.Start()
			}
		}
		return m
	}, b, false},
	{"a crash a day with one that is tried again for its probe", func(t *testing.T) *lkgtest.Machine {
		m := promotedTwice(t)
		m.Start()
		runFor(m, 2*time.Hour)
		m.Failing(40 * time.Second)
		m.Restart(lkg.CauseAdoption)
		m.Start()
		m.Healthy(40 * time.Second)
		m.Restart(lkg.CauseAdoption)
		for range 6 {
			m.Start()
			for range 28 {
				runFor(m, 50*time.Minute)
				m.Restart(lkg.CausePlanned)
				m.Start()
			}
			m.Crash()
		}
		return m
	}, b, false},
	{"the suspect lives for a while where nothing lived", func(t *testing.T) *lkgtest.Machine {
		m := suspected(t)
		for !m.Start().OnTrial {
			m.Crash()
		}
		m.Crash()
		m.Start()
		m.Crash()
		m.Start()
		m.Healthy(40 * time.Second)
		m.Crash()
		return m
	}, a, false},
}

// TestWhatHistoriesFound: R-CS-64, C-36.
func TestWhatHistoriesFound(t *testing.T) {
	for _, c := range found {
		t.Run(c.name, func(t *testing.T) {
			m := c.play(t)
			v := m.Start()
			s := m.Tracker().State()
			if listed := s.BadEntry(b) != nil; !v.Use.Same(c.use) || listed != c.listed {
				t.Errorf("uses %+v, listed: %v, want %+v, %v; case %+v", v.Use, listed, c.use, c.listed, v.Case)
			}
		})
	}
}

// TestNoWitnessConvicts: C-36. All that is asked answered at each end, and still something failed that every config
// needs: what was away then is back when the config below lives. The config is tried again, and is not listed.
func TestNoWitnessConvicts(t *testing.T) {
	ctx, o := t.Context(), options()
	tr, err := lkg.NewTracker(ctx, lkgtest.NewStore(), lkg.Options{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	start := func(e lkg.Exit) lkg.Verdict {
		t.Helper()
		v, err := lkg.Verdict{}, tr.Start(ctx, e)
		if err == nil {
			v, err = tr.Decide(ctx, o.Limits, o.Check)
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := tr.Assign(ctx, b); err != nil {
		t.Fatal(err)
	}
	start(lkg.Exit{})
	for range 3 {
		start(lkg.Exit{Kind: lkg.ExitCrash, Signature: "the message bus is away", Witnessed: true})
	}
	for range 4 {
		p, err := tr.Healthy(ctx, lkg.Health{Elapsed: 10 * time.Second})
		if err != nil || p.Result == lkg.ResultRejected {
			t.Fatalf("%+v, %v: a config is listed that was not tried again", p, err)
		}
	}
	if v := start(lkg.Exit{Kind: lkg.ExitPlanned}); !v.Use.Same(b) {
		t.Errorf("uses %+v, want the config that may be good: %+v", v.Use, v.Case)
	}
}
