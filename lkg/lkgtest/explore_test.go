// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

func ref(name string) lkg.Ref {
	return lkg.Ref{Namespace: "fleet", Name: name, UID: "uid-" + name, Key: "kubelet", Digest: "sha256:" + name}
}

var (
	a, b, c, d = ref("a"), ref("b"), ref("c"), ref("d")
	broken     = ref("broken")
)

// options: "broken" does not validate; trials are a minute, and two crashes are tolerated.
func options() lkgtest.Options {
	return lkgtest.Options{
		Check: func(r lkg.Ref) lkg.Check {
			if r.Same(broken) {
				return lkg.Check{Outcome: lkg.CheckInvalid, Err: errors.New("maxPods must be positive")}
			}
			return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit}
		},
		Limits: func(lkg.Ref) lkg.Limits {
			return lkg.Limits{
				Trial: time.Minute, CrashLoopThreshold: 2, MinHealthyRun: 30 * time.Second, ProbeDeadline: 20 * time.Second,
			}
		},
	}
}

// The stories: what can happen to a node, with every write of the package in some of them.
var stories = map[string]func(*lkgtest.Machine){
	"good config, then a crashing one": func(m *lkgtest.Machine) {
		m.Start()
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		for range 5 {
			m.Start()
			m.Healthy(10 * time.Second)
			m.Crash()
		}
		m.Start()
		m.Healthy(70 * time.Second)
	},
	"left, compared, tried again, rejected": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		for range 3 {
			m.Start()
			m.Crash()
		}
		m.Start()
		m.Healthy(40 * time.Second)
		m.Restart(lkg.CausePlanned)
		for range 3 {
			m.Start()
			m.Crash()
		}
		m.Start()
		m.Restart(lkg.CausePlanned)
		m.Start()
	},
	"nothing lives": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		for range 14 {
			m.Start()
			m.Crash()
		}
		m.Start()
		m.Healthy(70 * time.Second)
	},
	"an outage below every config, and it ends": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		for range 9 {
			m.Start()
			m.End(lkg.Exit{Kind: lkg.ExitCrash, Signature: "the runtime is away"})
		}
		m.Start()
		m.Healthy(70 * time.Second)
	},
	"the agent dies, the runtime is away, the program is gone": func(m *lkgtest.Machine) {
		m.Adopt(a)
		for _, fault := range []lkg.Fault{lkg.FaultSupervisor, lkg.FaultEnvironment, lkg.FaultNotExecuted} {
			for range 5 {
				m.Start()
				m.End(lkg.Exit{Kind: lkg.ExitCrash, Fault: fault, Signature: string(fault)})
			}
		}
		m.Start()
		m.Healthy(4 * time.Minute)
		m.Restart(lkg.CausePlanned)
		m.Start()
		m.Healthy(70 * time.Second)
	},
	"invalid config, then reset": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Healthy(90 * time.Second)
		m.Adopt(broken)
		m.Start()
		m.Do("Reset", func(ctx context.Context, tr lkgtest.Tracker) error { return tr.Reset(ctx) })
		m.Restart(lkg.CauseAdoption)
		m.Start()
	},
	"failing probe, forgotten, tried again": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Failing(time.Minute)
		m.Restart(lkg.CausePlanned)
		m.Start()
		m.Forget(a)
		m.Restart(lkg.CauseAdoption)
		m.Start()
		m.Healthy(2 * time.Minute)
	},
	"fallbacks crash too": func(m *lkgtest.Machine) {
		for _, r := range []lkg.Ref{a, b} {
			m.Adopt(r)
			m.Start()
			m.Promote()
		}
		m.Adopt(broken)
		for range 8 {
			m.Start()
			m.Crash()
		}
		m.Adopt(d)
		m.Start()
		m.Healthy(70 * time.Second)
	},
	"desired source wrong, rejected and promoted by hand": func(m *lkgtest.Machine) {
		m.Adopt(a)
		m.Start()
		m.Promote()
		m.Do("SetDesired", func(ctx context.Context, tr lkgtest.Tracker) error {
			return tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredMissing, Cause: "no such ConfigMap"})
		})
		m.Adopt(b)
		m.Start()
		m.Do("SetDesired", func(ctx context.Context, tr lkgtest.Tracker) error {
			return tr.SetDesired(ctx, lkg.Outcome{Kind: lkg.DesiredCorrect})
		})
		m.Restart(lkg.CausePlanned)
		m.Start()
		m.Do("Reject",
			func(ctx context.Context, tr lkgtest.Tracker) error { return tr.Reject(ctx, b, "node problem detector") })
		m.Crash()
		m.Start()
	},
	"crashes between reboots and steps of the clock": func(m *lkgtest.Machine) {
		m.Adopt(a)
		for i := range 8 {
			m.Start()
			m.Healthy(20 * time.Second)
			m.Step(time.Duration(1-2*(i%2)) * 30 * 24 * time.Hour)
			if i%3 == 0 {
				m.Reboot()
			} else {
				m.Kill()
			}
		}
		m.Start()
	},
}

// TestAnyPrefixOfWrites is the main property: any prefix of writes, any restart, any clock step leads to a config that
// passed every check, or to a refusal because the local baseline is not good (R-CS-04, R-CS-16..20, R-CS-38). Where a
// share is enough, one story is explored, and the others are told once.
// L-CS-22, L-CS-37.
func TestAnyPrefixOfWrites(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			if raceshare.Step(t) > 1 && name != "invalid config, then reset" {
				story(lkgtest.NewMachine(t, options()))
				return
			}
			runs := lkgtest.Explore(t, options(), story)
			if runs < 20 {
				t.Errorf("ran %d machines, want one per write and kind of stop", runs)
			}
			t.Logf("%d machines", runs)
		})
	}
}

// TestBadBaselineAlwaysRefuses: R-CS-52, R-CS-53, whatever the disk holds.
func TestBadBaselineAlwaysRefuses(t *testing.T) {
	o := options()
	good := o.Check
	bad := false
	o.Check = func(r lkg.Ref) lkg.Check {
		if r.IsLocal() && bad {
			return lkg.Check{Outcome: lkg.CheckInvalid, Origin: lkg.OriginInit, Err: errors.New("bad init")}
		}
		return good(r)
	}
	lkgtest.Explore(t, o, func(m *lkgtest.Machine) {
		bad = false
		m.Adopt(a)
		m.Start()
		m.Healthy(2 * time.Minute)
		bad = true
		m.Kill()
		if v := m.Start(); v.Refuse == nil {
			t.Errorf("used %+v with a bad baseline", v.Use)
		}
	})
}
