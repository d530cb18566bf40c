// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

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
)

// C-17: a status that landed with one of two reporters and not with the other is no report: going back to what was
// reported before is news to the one that landed. L-CS-17.
func TestReportThatLandedInPartIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		second := &configsynctest.Recorder{}
		n.reporters = []configsync.Reporter{second}
		n.start()
		defer func() { n.stop() }()
		n.promoted()
		second.Fail(errors.New("503"))
		n.server.Spoil(&configsync.InvalidError{Problem: "exactly one subfield must be non-nil, but all were nil"})
		n.wait(time.Second)
		if got := n.rec.Last().Condition.Status; got != lkg.StatusUnknown {
			t.Fatalf("the first reporter holds %s, want Unknown", got)
		}
		o := n.server.Object("kube-system", "v1")
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
		n.wait(time.Second)
		second.Fail(nil)
		n.wait(time.Minute)
		for i, r := range []*configsynctest.Recorder{n.rec, second} {
			if got := r.Last().Condition.Status; got != lkg.StatusTrue {
				t.Errorf("reporter %d holds %s after the trouble was over, want True", i, got)
			}
		}
	})
}

// A config that gets sick while the disk can't be written is left all the same, and the status never says that all
// is well.
func TestSickConfigIsLeftWithoutADisk(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "sick-2", "threshold", "5")
		n.wait(time.Minute)
		n.runs(v2, "a sick config is given its probe deadline")
		n.disk.Fail(errors.New("read-only file system"))
		n.wait(5 * time.Minute)
		n.runs(v1, "going back needs no record")
		if st := n.rec.Last(); st.Condition.Status != lkg.StatusFalse || !strings.Contains(st.Condition.Reason, v2.UID) {
			t.Errorf("condition %+v, want False with what was found of v2", st.Condition)
		}
		n.disk.Fail(nil)
		n.wait(5 * time.Minute)
		n.runs(v1, "v2 stays rejected")
		if st := n.rec.Last(); st.Error != "" {
			t.Errorf("error %q after the disk has healed, want none", st.Error)
		}
	})
}

// A config on trial that an unrecorded start did not use is used again once the disk takes records.
func TestTrialGoesOnWhenTheDiskHeals(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2", "threshold", "5")
		n.wait(time.Minute)
		n.disk.Fail(errors.New("no space left on device"))
		n.child.Kill()
		n.wait(time.Minute)
		n.runs(v1, "an unrecorded start uses what is known to be good")
		n.disk.Fail(nil)
		n.wait(time.Minute)
		n.runs(v2, "the trial goes on when the disk has healed")
		if st := n.rec.Last(); st.Error != "" || st.Condition.Status != lkg.StatusTrue {
			t.Errorf("status %+v, want no trouble left", st)
		}
	})
}

// A source whose watch is dead is read all the same, if slowly.
func TestDeadWatchIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.source = deaf{n.server}
		n.start()
		defer func() { n.stop() }()
		n.wait(time.Minute)
		o := n.push("v1", "good-1")
		n.wait(11 * time.Minute)
		n.runs(o, "the source is read again each Resync")
	})
}

// deaf is a source whose watch tells nothing.
type deaf struct{ configsync.Source }

func (deaf) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// A Restarter that knows that its child is dead keeps the time from being credited, without any probe being named.
func TestDeadChildEarnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.noProbes = true
		n.start()
		defer func() { n.stop() }()
		n.child.Delay = 30 * time.Second
		o := n.push("v1", "crash-1", "threshold", "10", "trial", "5s")
		n.wait(2 * time.Minute)
		if st := n.syncer.Status(); st.LastKnownGood.UID == o.UID {
			t.Errorf("a config whose process is dead for 30 of 32 seconds became the last known good one: %+v", st)
		}
	})
}

// Forgetting another version of the object that runs leaves the trial of the running one alone.
func TestForgettingAnEditLeavesTheTrialAlone(t *testing.T) {
	onNode(t, func(n *node) {
		o := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-1"}, false)
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Policy: configsync.Follow})
		n.wait(time.Minute)
		n.server.Put("kube-system", "cm", map[string]string{"kubelet": "invalid-2"}, false)
		n.wait(6 * time.Minute)
		n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-1"}, false)
		n.wait(10 * time.Second)
		if err := n.syncer.Forget(n.t.Context(), o.UID); err != nil {
			t.Fatal(err)
		}
		n.wait(6 * time.Minute)
		if st := n.syncer.Status(); st.LastKnownGood.Digest != o.Digest() {
			t.Errorf("the trial of the running version did not go on: %+v", st)
		}
	})
}

// A restart that was asked for, and comes when its marker is used up already, counts against nobody.
func TestLateRestartCountsAgainstNobody(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.push("v1", "good-1")
		n.wait(time.Minute)
		if err := n.child.Restart(n.t.Context(), configsync.Change{}); err != nil {
			t.Fatal(err)
		}
		n.wait(time.Minute)
		n.runs(v1, "the child was stopped on request, at a threshold of 0")
	})
}

// What happened can be told before a restart: the record is there already, and the restart is not.
func TestBeforeRestartIsCalledBetweenRecordAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var told []configsync.Change
		n.before = func(ctx context.Context, now configsync.Status, c configsync.Change) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Second {
				t.Error("BeforeRestart has no deadline of 2 s")
			}
			if c.Kind == configsync.Adopt && (now.Assigned != c.To || now.Active != c.From) {
				t.Errorf("at %+v the status has %+v assigned and %+v active", c, now.Assigned, now.Active)
			}
			told = append(told, c)
		}
		n.start()
		defer func() { n.stop() }()
		n.promoted()
		v2 := n.push("v2", "sick-2", "threshold", "5")
		n.wait(10 * time.Minute)
		if len(told) < 4 || told[1].To.UID != v2.UID || told[2].Kind != configsync.RollBack || told[3].To.UID != v2.UID {
			t.Errorf("told of %+v, want two adoptions, a rollback, and another try", told)
		}
	})
}
