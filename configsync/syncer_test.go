// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-16, R-CS-21, R-CS-37: the wanted config is found through the source, by watch. R-CS-46: it is promoted by a timer, without a restart.
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

// R-CS-42, R-CS-56, R-CS-64: a crash loop during the trial ends on the last known good config. R-CS-58: and stays there.
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

// R-CS-33: trouble on a live process changes nothing and is reported; and cleared when it is over.
func TestTroubleWithSourceIsReportedOnly(t *testing.T) {
	trouble := map[string]func(n *node, v2 configsync.Object){
		"missing":   func(n *node, v2 configsync.Object) { n.server.Delete(v2.Namespace, v2.Name) },
		"forbidden": func(n *node, v2 configsync.Object) { n.server.Deny(v2.Namespace, v2.Name, true) },
		"recreated": func(n *node, v2 configsync.Object) {
			n.server.Delete(v2.Namespace, v2.Name)
			n.server.Put(v2.Namespace, v2.Name, v2.Data, true)
		},
		"unreachable": func(n *node, _ configsync.Object) { n.server.Down(true) },
		"invalid": func(n *node, _ configsync.Object) {
			n.server.Spoil(&configsync.InvalidError{Problem: "exactly one subfield must be non-nil, but all were nil"})
		},
	}
	for name, cause := range trouble {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(n *node) {
				v1 := n.promoted()
				starts := len(n.child.Starts())
				v2 := n.server.Put("kube-system", "v2", map[string]string{"kubelet": "good-2"}, true)
				cause(n, v2)
				n.server.Name(&configsync.Spec{Namespace: v2.Namespace, Name: v2.Name, UID: v2.UID})
				cause(n, v2)
				n.wait(5 * time.Minute)
				n.runs(v1, "trouble with the source leaves a live process alone")
				st := n.rec.Last()
				if st.Condition.Status != lkg.StatusUnknown || st.Error == "" ||
					!strings.HasPrefix(st.Condition.Reason, "failed to sync, desired config unclear, cause: ") {
					t.Errorf("status %+v, want Unknown with a cause", st)
				}
				if got := len(n.child.Starts()); got != starts {
					t.Errorf("%d starts, want %d", got, starts)
				}
				n.server.Down(false)
				v3 := n.push("v3", "good-3")
				n.wait(5 * time.Minute)
				n.runs(v3, "the node goes on when the trouble is over")
				if st := n.rec.Last(); st.Error != "" || st.Condition.Status != lkg.StatusTrue {
					t.Errorf("status %+v, want no error left", st)
				}
			})
		})
	}
}

// R-CS-32, R-CS-79: a source known to be invalid makes a start use the last known good config.
func TestStartWithInvalidSourceUsesLastKnownGood(t *testing.T) {
	onNode(t, func(n *node) {
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.server.Spoil(&configsync.InvalidError{Problem: "exactly one subfield must be non-nil, but all were nil"})
		n.wait(time.Minute)
		n.runs(v2, "a live process is left alone")
		n.stop()
		n.start()
		n.runs(configsync.Object{}, "a start does not use a config on trial while the source is invalid")
		n.condition(lkg.StatusUnknown, "failed to sync, desired config unclear, cause: invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
			"using last-known-good (init)")
	})
}

// DESIGN D4: a source that is merely unreachable keeps the recorded current config at a start; Policy.Literal reads the rule literally.
func TestStartWithUnreachableSource(t *testing.T) {
	for _, literal := range []bool{false, true} {
		t.Run(map[bool]string{false: "default", true: "literal"}[literal], func(t *testing.T) {
			onNode(t, func(n *node) {
				v2 := n.push("v2", "good-2")
				n.wait(time.Minute)
				n.server.Down(true)
				n.wait(5 * time.Minute)
				n.stop()
				n.policy.Literal = literal
				n.start()
				if literal {
					v2 = configsync.Object{}
				}
				n.runs(v2, "what an unreachable source means at a start is the policy's choice")
			})
		})
	}
}

// R-CS-31, R-CS-55: an empty source resets to the local config, the last known good one included.
func TestEmptySourceResetsToLocal(t *testing.T) {
	onNode(t, func(n *node) {
		n.promoted()
		n.server.Name(nil)
		n.wait(5 * time.Second)
		n.runs(configsync.Object{}, "an empty source means the local config")
		if st := n.syncer.Status(); !st.LastKnownGood.IsLocal() || !st.Assigned.IsLocal() {
			t.Errorf("assigned and last known good must be local after a reset: %+v", st)
		}
		n.condition(lkg.StatusTrue, "current is set to the local default, and an init config was provided", "using current (init)")
		if raw, err := n.disk.Get(n.t.Context(), "last-known-good"); err != nil || len(raw) != 0 {
			t.Errorf("record last-known-good is %q, %v; want an empty document", raw, err)
		}
		if left, _ := n.disk.List(n.t.Context(), "checkpoints"); len(left) != 0 {
			t.Errorf("checkpoints %q are left, want none: no record names them", left)
		}
	})
}

// DESIGN D9, R-CS-82: a mutable object is refused unless its digest is named or edits are followed.
func TestMutableObject(t *testing.T) {
	onNode(t, func(n *node) {
		o := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-1"}, false)
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
		n.wait(time.Minute)
		n.runs(configsync.Object{}, "a mutable object without a digest is refused")
		if got := n.rec.Last().Error; !strings.Contains(got, "mutable") {
			t.Errorf("error %q, want one that says the object is mutable", got)
		}
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Digest: o.Digest()})
		n.wait(time.Minute)
		n.runs(o, "a digest pins a mutable object")
		n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-2"}, false)
		n.wait(15 * time.Minute)
		if got := n.syncer.Status().Active.Digest; got != o.Digest() {
			t.Errorf("active digest %s, want %s: an edit in place must not move a pinned node", got, o.Digest())
		}
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Policy: configsync.Follow})
		n.wait(6 * time.Minute)
		edited := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-3"}, false)
		n.wait(6 * time.Minute)
		if got := n.syncer.Status().Active.Digest; got != edited.Digest() {
			t.Errorf("active digest %s, want %s: an edit is followed within its jitter", got, edited.Digest())
		}
		crash := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "crash-4"}, false)
		n.wait(7 * time.Minute)
		if st := n.syncer.Status(); st.Active.Digest == crash.Digest() || st.Condition.Status != lkg.StatusFalse {
			t.Errorf("status %+v, want a rollback from the edit that crashes", st)
		}
	})
}

// R-CS-08: without a store and a source nothing is watched or written, and the local config is used.
func TestDynamicConfigSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Store, o.Source, o.Fetcher = nil, nil, nil
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Bootstrap(t.Context(), lkg.Exit{})
		if err != nil || a.Config != "good-init" {
			t.Errorf("Bootstrap = %q, %v; want the init config", a.Config, err)
		}
		if n.disk.Writes() != 0 {
			t.Errorf("%d writes, want none", n.disk.Writes())
		}
	})
}

// R-CS-52, R-CS-53, R-CS-54: a bad local baseline refuses the start, whatever the remote config is.
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

// C-17: a report that fails is sent again; a trial is no stream of reports.
func TestReportsLandOnce(t *testing.T) {
	onNode(t, func(n *node) {
		n.rec.Fail(errors.New("503"))
		n.push("v1", "good-1")
		n.wait(time.Minute)
		if got := n.rec.Last().Active.UID; got != "" {
			t.Fatalf("a failed report landed: %q", got)
		}
		n.rec.Fail(nil)
		n.wait(3 * time.Minute)
		landed := len(n.rec.All())
		if got := n.rec.Last().Active.UID; got != n.syncer.Status().Active.UID {
			t.Errorf("reported %q, want %q after the reporter came back", got, n.syncer.Status().Active.UID)
		}
		n.wait(5 * time.Minute)
		if got := len(n.rec.All()) - landed; got < 4 || got > 6 {
			t.Errorf("%d reports in half of a quiet trial, want one for each tenth of it", got)
		}
		n.wait(10 * time.Minute)
		settled := len(n.rec.All())
		writes := n.disk.Writes()
		n.wait(time.Hour)
		if got := len(n.rec.All()); got != settled || n.disk.Writes() != writes {
			t.Errorf("%d reports and %d writes in a quiet hour, want none", got-settled, n.disk.Writes()-writes)
		}
		n.rec.Fail(errors.New("503"))
		n.child.Kill()
		n.wait(time.Minute)
		n.rec.Fail(nil)
		n.wait(5 * time.Minute)
		if got := len(n.rec.All()); got != settled+1 {
			t.Errorf("%d reports of a restart whose first report failed, want 1: R-CS-72 renews the heartbeat", got-settled)
		}
	})
}

// A record or checkpoint that was lost is fetched again, and nothing is marked bad for it.
func TestLostCheckpointIsFetchedAgain(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.runs(v2, "adopted")
		n.stop()
		n.disk.Corrupt("checkpoints/" + v2.UID)
		n.server.Down(true)
		n.start()
		n.runs(v1, "C-06: a damaged checkpoint ends on the last known good config")
		if st := n.syncer.Status(); len(st.Rejected) != 0 || st.Condition.Status != lkg.StatusUnknown {
			t.Errorf("status %+v, want Unknown and nothing rejected", st)
		}
		n.server.Down(false)
		n.wait(5 * time.Minute)
		n.runs(v2, "the checkpoint is fetched again once there is a server")
	})
}

// A disk that can't be written keeps the running config, and says so; a start on it uses nothing unproven.
func TestReadOnlyDisk(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		n.disk.Fail(errors.New("read-only file system"))
		v2 := n.push("v2", "good-2")
		n.wait(5 * time.Minute)
		n.runs(v1, "what can't be recorded is not adopted")
		if st := n.rec.Last(); st.Condition.Status == lkg.StatusTrue || !strings.Contains(st.Error, "read-only") {
			t.Errorf("status %+v, want the disk's trouble", st)
		}
		n.child.Kill()
		n.wait(time.Minute)
		n.runs(v1, "a start on a read-only disk uses the last known good config")
		n.disk.Fail(nil)
		n.wait(5 * time.Minute)
		n.runs(v2, "the node goes on by itself when the disk is writable again")
	})
}

// A start that can't be recorded doesn't use a config on trial, and says why.
func TestUnrecordedStart(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2", "threshold", "5")
		n.wait(time.Minute)
		n.runs(v2, "adopted")
		n.disk.Fail(errors.New("no space left on device"))
		n.child.Kill()
		n.wait(5 * time.Minute)
		n.runs(v1, "an unrecorded start uses what is known to be good")
		if st := n.rec.Last(); !strings.Contains(st.Error, "no space left") || st.Condition.Status == lkg.StatusTrue {
			t.Errorf("status %+v, want the disk's trouble as the cause", st)
		}
		n.disk.Fail(nil)
	})
}

// R-CS-33: not even a command of a person makes trouble with the source move a live process.
func TestTroubleNeverMovesALiveProcess(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.push("v1", "invalid-1")
		n.wait(time.Minute)
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.server.Spoil(&configsync.InvalidError{Problem: "exactly one subfield must be non-nil, but all were nil"})
		n.wait(time.Minute)
		if err := n.syncer.Forget(n.t.Context(), v1.UID); err != nil {
			t.Fatal(err)
		}
		n.wait(time.Minute)
		n.runs(v2, "the config on trial goes on while the source is invalid")
	})
}

// A Restarter that wants the process to exit ends Run with its own error.
func TestRestarterErrorEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		exit := errors.New("exit with code 3")
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error { return exit })
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); !errors.Is(err, configsync.ErrNotStarted) {
			t.Errorf("Run before Bootstrap = %v, want ErrNotStarted", err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		n.push("v1", "good-1")
		if err := s.Run(t.Context()); !errors.Is(err, exit) {
			t.Errorf("Run = %v, want the Restarter's error", err)
		}
		if _, err := n.disk.Get(n.t.Context(), "planned-restart"); err != nil {
			t.Errorf("planned-restart record: %v; R-CS-38 wants checkpoint, current and marker before the restart", err)
		}
	})
}

type restarterFunc func(context.Context, configsync.Change) error

func (f restarterFunc) Restart(ctx context.Context, c configsync.Change) error { return f(ctx, c) }
