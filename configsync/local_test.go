// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// R-CS-07: a node that never saw a server starts from its init config. R-CS-15: which stands in for the built-in
// defaults. R-CS-51: it is good at once, without a trial.
func TestLocalConfigIsGoodFromTheStart(t *testing.T) {
	for init, want := range map[string]string{"good-init": "good-init", "": "good-default"} {
		t.Run(want, func(t *testing.T) {
			n := newNode(t)
			n.init = init
			n.server.Down(true)
			s, err := configsync.New(t.Context(), n.options2())
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Bootstrap(t.Context(), lkg.Exit{})
			if err != nil || a.Config != want || a.Verdict.OnTrial {
				t.Errorf("Bootstrap = %q, on trial %t, %v; want %q and no trial", a.Config, a.Verdict.OnTrial, err, want)
			}
			if st := s.Status(); !st.LastKnownGood.IsLocal() || st.Trial != nil {
				t.Errorf("status %+v, want the local config as the last known good one", st)
			}
		})
	}
}

// R-CS-53: invalid built-in defaults refuse the start as a bad init config does, whatever remote config is good, and
// are no matter where an init config stands in for them.
func TestBadDefaultsRefuseTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		n.promoted()
		n.stop()
		for init, refused := range map[string]bool{"": true, "good-init": false} {
			n.init = init
			o := n.options2()
			o.Default = func() string { return "invalid-default" }
			s, err := configsync.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Bootstrap(t.Context(), lkg.Exit{})
			var refuse *lkg.BaselineError
			if got := errors.As(err, &refuse); got != refused {
				t.Fatalf("Bootstrap with init %q = %v, want a BaselineError: %t", init, err, refused)
			}
			if !refused {
				continue
			}
			if refuse.Origin != lkg.OriginDefault || refuse.Outcome != lkg.CheckInvalid {
				t.Errorf("refused for origin %q and outcome %v, want the defaults, which are invalid", refuse.Origin, refuse.Outcome)
			}
			if a.Config != "" || !strings.Contains(err.Error(), "local baseline (default) is invalid") {
				t.Errorf("config %q and error %v, want none, and one about the defaults", a.Config, err)
			}
		}
	})
}

// R-CS-12: the store is all that a start decides from: on another machine with a copy of it, the start decides the
// same.
func TestStoreIsAllThatDecides(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		n.push("v2", "crash-2")
		n.wait(time.Minute)
		n.stop()
		want := n.bootstrap()
		n.disk = n.disk.Clone()
		n.server = &configsynctest.Server{}
		n.server.Down(true)
		got := n.bootstrap()
		if got.Ref != want.Ref || got.Config != want.Config || got.Verdict.Condition != want.Verdict.Condition {
			t.Errorf("a start on a copy of the store uses %+v, want %+v", got, want)
		}
		if got.Ref.UID != v1.UID {
			t.Errorf("the start uses UID %q, want v1", got.Ref.UID)
		}
		n.start() // for the end of the test
	})
}

// R-CS-09: what a node uses is one version of the object, all keys of it, while the object is edited again and again.
func TestAllKeysAreOfOneVersion(t *testing.T) {
	onNode(t, func(n *node) {
		o := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-0", "other": "0"}, false)
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Policy: configsync.Follow})
		for i := range 10 {
			version := string(rune('0' + i))
			n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-" + version, "other": version}, false)
			n.wait(90 * time.Second)
			a := n.bootstrap()
			if a.Ref.IsLocal() {
				continue // the first edits may come before the first adoption
			}
			if got := a.Object.Data; got["kubelet"] != "good-"+got["other"] {
				t.Errorf("edit %d: the start uses keys of two versions: %v", i, got)
			}
			if a.Object.Digest() != a.Ref.Digest {
				t.Errorf("edit %d: the object has digest %s, its reference says %s", i, a.Object.Digest(), a.Ref.Digest)
			}
		}
	})
}

// R-CS-44: somebody outside can reject what runs.
func TestRejectFromOutside(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.runs(v2, "adopted")
		if err := n.syncer.Reject(n.t.Context(), n.syncer.Status().Active, "disk errors since the change"); err != nil {
			t.Fatal(err)
		}
		n.wait(10 * time.Second)
		n.runs(v1, "a config that was rejected from outside is left at once")
		if st := n.rec.Last(); st.Condition.Status != lkg.StatusFalse || !strings.Contains(st.Condition.Reason, "disk errors since the change") {
			t.Errorf("condition %+v, want False with the reason that was given", st.Condition)
		}
		if err := n.syncer.Reject(n.t.Context(), lkg.Ref{}, "no"); !errors.Is(err, lkg.ErrInvalid) {
			t.Errorf("Reject of the local config = %v, want ErrInvalid", err)
		}
	})
}
