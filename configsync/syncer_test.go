// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-16, R-CS-21, R-CS-37: the wanted config is found through the source, by watch. R-CS-46: it is promoted by a
// timer, without a restart. L-CS-03.
func TestNewConfigIsAdoptedAndPromoted(t *testing.T) {
	onNode(t, func(n *node) {
		n.condition(lkg.StatusTrue, "current is set to the local default, and an init config was provided", "using current (init)")
		o := n.push("v1", "good-1")
		n.wait(3 * time.Second)
		n.runs(o, "a good config is adopted soon after the source names it")
		n.condition(lkg.StatusTrue, "all checks passed", "using current (UID: "+o.UID+")")
		if st := n.syncer.Status(); st.Trial == nil || !st.LastKnownGood.IsLocal() {
			t.Errorf("a config that was just adopted must be on trial, not good yet: %+v", st)
		}
		starts := len(n.child.Starts())
		n.wait(12 * time.Minute)
		if st := n.syncer.Status(); st.LastKnownGood.UID != o.UID || st.Trial != nil {
			t.Errorf("a config that was healthy for its trial must be the last known good one: %+v", st)
		}
		if got := len(n.child.Starts()); got != starts {
			t.Errorf("%d starts, want %d: promotion needs no restart", got, starts)
		}
	})
}

func TestNewTrialBeginsAtZero(t *testing.T) {
	onNode(t, func(n *node) {
		n.promoted()
		v2, seen := n.push("v2", "good-2"), false
		n.wait(time.Minute)
		for _, st := range n.rec.All() {
			if st.Active.UID == v2.UID && st.Trial != nil {
				seen = true
				if st.Trial.Healthy > time.Minute {
					t.Errorf("a minute after the assignment: healthy for %s, want the config's own time, not that of the one before", st.Trial.Healthy)
				}
			}
		}
		if !seen {
			t.Error("no status was reported while v2 was on trial")
		}
	})
}

// R-CS-40, R-CS-41: bad at once, without a start. R-CS-59, R-CS-61, R-CS-75: the status says what was avoided and why.
func TestConfigThatFailsChecksIsNeverStarted(t *testing.T) {
	for word, reason := range map[string]string{
		"invalid-2": "failed to validate current (UID: ", "no such word": "failed to ", "panic-2": "failed to ",
	} {
		t.Run(word, func(t *testing.T) {
			onNode(t, func(n *node) {
				v1 := n.promoted()
				starts := len(n.child.Starts())
				v2 := n.push("v2", word)
				n.wait(time.Minute)
				n.runs(v1, "a config that fails its checks is not started")
				st := n.rec.Last()
				if st.Condition.Status != lkg.StatusFalse || !strings.HasPrefix(st.Condition.Reason, reason) ||
					!strings.Contains(st.Condition.Reason, v2.UID) {
					t.Errorf("condition %+v, want False and a reason that names %s", st.Condition, v2.UID)
				}
				if want := "using last known good: (UID: " + v1.UID + ")"; st.Condition.Message != want {
					t.Errorf("message %q, want %q", st.Condition.Message, want)
				}
				if len(st.Rejected) != 1 || st.Rejected[0].Ref.UID != v2.UID || st.Rejected[0].Reason != st.Condition.Reason {
					t.Errorf("rejected %+v, want one entry for %s with the condition's reason", st.Rejected, v2.UID)
				}
				if st.Assigned.UID != v2.UID {
					t.Errorf("assigned UID %q, want %q: current goes on naming the wanted config", st.Assigned.UID, v2.UID)
				}
				if got := len(n.child.Starts()); got != starts {
					t.Errorf("%d starts, want %d", got, starts)
				}
			})
		})
	}
}

// R-CS-42, R-CS-56, R-CS-64: a crash loop during the trial ends on the last known good config. R-CS-58: and stays
// there. L-CS-02, L-CS-25.
func TestCrashLoopRollsBack(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(map[bool]string{false: "server up", true: "server down"}[down], func(t *testing.T) {
			onNode(t, func(n *node) {
				v1 := n.promoted()
				before := len(n.child.Starts())
				v2 := n.push("v2", "crash-2", "threshold", "2")
				n.wait(2 * time.Second)
				n.server.Down(down)
				n.wait(time.Minute)
				n.runs(v1, "R-CS-16: a crash loop rolls back without any server")
				if got := n.child.Starts()[before:]; len(got) != 4 {
					t.Errorf("%d starts after the push, want 4: three of v2 (threshold 2 and the adoption), one of v1", len(got))
				}
				n.server.Down(false)
				n.wait(5 * time.Minute)
				n.runs(v1, "a rejected config is not tried again")
				st := n.rec.Last()
				if st.Condition.Status != lkg.StatusFalse || !strings.Contains(st.Condition.Reason, v2.UID) ||
					st.Condition.Message != "using last known good: (UID: "+v1.UID+")" {
					t.Errorf("condition %+v, want False, naming both configs", st.Condition)
				}
				v3 := n.push("v3", "good-3")
				n.wait(12 * time.Minute)
				n.runs(v3, "C-25: a newer config is taken up after a rejected one")
				if got := n.syncer.Status().LastKnownGood.UID; got != v3.UID {
					t.Errorf("last known good is %q, want v3", got)
				}
			})
		})
	}
}

// A config that never gets healthy is rejected by its probe deadline and rolled back without a person.
// L-CS-34.
func TestSickConfigIsRolledBack(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "sick-2")
		n.wait(time.Minute)
		n.runs(v2, "a sick config is given its probe deadline")
		n.wait(2 * time.Minute)
		n.runs(v1, "a config that fails its probe beyond the deadline is rolled back")
		if st := n.rec.Last(); st.Condition.Status != lkg.StatusFalse {
			t.Errorf("condition %+v, want False", st.Condition)
		}
	})
}

// R-CS-52, R-CS-54: a bad init config refuses the start, whatever the remote config is.
func TestBadBaselineRefusesStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		n.promoted()
		n.stop()
		n.init = "invalid-init"
		s, err := configsync.New(t.Context(), n.options2())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Bootstrap(t.Context(), lkg.Exit{})
		var refuse *lkg.BaselineError
		if !errors.As(err, &refuse) || refuse.Origin != lkg.OriginInit {
			t.Errorf("Bootstrap = %v, want a BaselineError of the init config", err)
		}
	})
}

// options2 are options for a Syncer that is never run.
func (n *node) options2() configsync.Options[string] {
	o := n.options()
	o.Source, o.Fetcher = nil, nil
	return o
}

// R-CS-66: forgetting a bad entry makes the node try the config again.
func TestForgottenConfigIsTriedAgain(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "crash-2")
		n.wait(time.Minute)
		n.runs(v1, "rolled back")
		if err := n.syncer.Forget(n.t.Context(), "no-such-uid"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Forget of an unknown UID = %v, want fs.ErrNotExist", err)
		}
		before := len(n.child.Starts())
		if err := n.syncer.Forget(n.t.Context(), v2.UID); err != nil {
			t.Fatalf("Forget: %v", err)
		}
		n.wait(time.Minute)
		if got := n.child.Starts()[before:]; len(got) == 0 || got[0].UID != v2.UID {
			t.Errorf("starts after Forget: %+v, want v2 first", got)
		}
		n.runs(v1, "it still crashes, so it is rolled back again")
	})
}

// UseLocal leaves the remote config until a newer one is named.
func TestUseLocalHoldsUntilNewerConfig(t *testing.T) {
	onNode(t, func(n *node) {
		n.promoted()
		if err := n.syncer.UseLocal(n.t.Context(), "asked for by a person"); err != nil {
			t.Fatal(err)
		}
		n.wait(10 * time.Minute)
		n.runs(configsync.Object{}, "use-local holds although the source still names v1")
		if st := n.rec.Last(); st.Condition.Status != lkg.StatusFalse || !strings.HasSuffix(st.Condition.Reason, "asked for by a person") {
			t.Errorf("condition %+v, want False with the person's reason", st.Condition)
		}
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.runs(v2, "a newer config is taken up")
	})
}

// A Restarter that wants the process to exit ends Run with its own error.
func TestRestarterErrorEndsRun(t *testing.T) {
	eachDriver(t, func(t *testing.T, drive driver) {
		n := newNode(t)
		exit := errors.New("exit with code 3")
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error { return exit })
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := drive(t.Context(), s); !errors.Is(err, configsync.ErrNotStarted) {
			t.Errorf("Run before Bootstrap = %v, want ErrNotStarted", err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		n.push("v1", "good-1")
		if err := drive(t.Context(), s); !errors.Is(err, exit) {
			t.Errorf("Run = %v, want the Restarter's error", err)
		}
		if _, err := n.disk.Get(n.t.Context(), "planned-restart"); err != nil {
			t.Errorf("planned-restart record: %v; R-CS-38 wants checkpoint, current and marker before the restart", err)
		}
	})
}

// A restart that was asked for and never came is asked for again.
func TestLostRestartIsAskedForAgain(t *testing.T) {
	eachDriver(t, func(t *testing.T, drive driver) {
		n := newNode(t)
		var asked atomic.Int32
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error {
			asked.Add(1)
			return nil
		})
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- drive(ctx, s) }()
		n.push("v1", "good-1")
		n.wait(time.Minute)
		if asked.Load() != 1 {
			t.Errorf("asked %d times within a minute, want once: the restart may be under way", asked.Load())
		}
		n.wait(4 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if asked.Load() != 3 {
			t.Errorf("asked %d times within five minutes, want 3: once each RetryMax", asked.Load())
		}
	})
}

type restarterFunc func(context.Context, configsync.Change) error

func (f restarterFunc) Restart(ctx context.Context, c configsync.Change) error { return f(ctx, c) }
