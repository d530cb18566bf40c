// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-33: trouble on a live process changes nothing and is reported; and cleared when it is over.
// L-CS-17.
func TestTroubleWithSourceIsReportedOnly(t *testing.T) {
	assign := func(n *node, o configsync.Object) {
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
	}
	// Each makes the trouble before it assigns v2, so that at no moment v2 can be had.
	trouble := map[string]func(n *node, v2 configsync.Object){
		"missing": func(n *node, v2 configsync.Object) {
			n.server.Delete(v2.Namespace, v2.Name)
			assign(n, v2)
		},
		"forbidden": func(n *node, v2 configsync.Object) {
			n.server.Deny(v2.Namespace, v2.Name, true)
			assign(n, v2)
		},
		"recreated": func(n *node, v2 configsync.Object) {
			n.server.Delete(v2.Namespace, v2.Name)
			n.server.Put(v2.Namespace, v2.Name, v2.Data, true)
			assign(n, v2)
		},
		"unreachable": func(n *node, v2 configsync.Object) {
			n.server.Down(true)
			assign(n, v2)
		},
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

// R-CS-32, R-CS-79: restarts while the source is invalid change nothing in the report: its condition is that of the
// first of them, with the words for an invalid source at a start, and not True in between.
func TestRestartsWithInvalidSourceAreOneTransition(t *testing.T) {
	for good, message := range map[string]string{
		"remote": "using last known good: (UID: ", "local": "using last-known-good (init)",
	} {
		t.Run(good, func(t *testing.T) {
			onNode(t, func(n *node) {
				if good == "remote" {
					n.promoted()
				}
				n.server.Spoil(&configsync.InvalidError{Problem: "exactly one subfield must be non-nil, but all were nil"})
				n.wait(time.Minute)
				before := len(n.rec.All())
				for range 3 {
					n.stop()
					n.start()
					n.wait(time.Minute)
				}
				reports := n.since(before)
				if len(reports) == 0 {
					t.Fatal("nothing was reported")
				}
				first := reports[0].Condition
				if first.Status != lkg.StatusUnknown || !strings.HasPrefix(first.Message, message) {
					t.Errorf("the first report after a restart has %+v, want Unknown and %q", first, message)
				}
				for _, r := range reports {
					if r.Condition != first {
						t.Errorf("a later report has %+v, want that of the first, %+v", r.Condition, first)
					}
				}
			})
		})
	}
}

// R-CS-32: a source that is merely unreachable keeps the recorded current config at a start; Policy.Literal reads the
// rule literally.
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

// R-CS-82: a mutable object is refused unless its digest is named or edits are followed.
// L-CS-18.
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
