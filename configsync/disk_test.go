// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// C-17: a report that fails is sent again; a trial is no stream of reports.
// L-CS-17.
func TestReportsLandOnce(t *testing.T) {
	onPromptNode(t, func(n *node) {
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
		if got := len(n.rec.All()) - landed; got < 4 || got > 7 {
			t.Errorf("%d reports in half of a quiet trial, want one for each tenth of it, and one or two for looks at the source", got)
		}
		n.wait(10 * time.Minute)
		settled := len(n.rec.All())
		writes := n.disk.Writes()
		n.wait(time.Hour)
		if got := len(n.rec.All()) - settled; got < 5 || got > 9 || n.disk.Writes() != writes {
			t.Errorf("%d reports and %d writes in a quiet hour, want one each Resync, and no write", got, n.disk.Writes()-writes)
		}
		settled = len(n.rec.All())
		n.rec.Fail(errors.New("503"))
		n.child.Kill()
		n.wait(time.Minute)
		n.rec.Fail(nil)
		n.wait(5 * time.Minute)
		if got := len(n.rec.All()) - settled; got < 1 || got > 2 {
			t.Errorf("%d reports of a restart whose first report failed, want 1, or one more for a Resync: R-CS-72 renews the heartbeat", got)
		}
	})
}

// A record or checkpoint that was lost is fetched again, and nothing is marked bad for it.
// L-CS-06.
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
