// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// goesBack brings the nodes to the revision that they had before.
func (f *fleet) goesBack(revision string) {
	f.t.Helper()
	history := f.rollout().Status.History
	i := slices.IndexFunc(history, func(e v1alpha1.HistoryEntry) bool { return e.Revision.Name == revision })
	if i < 0 {
		f.t.Fatalf("the history has no %q: %+v", revision, history)
	}
	f.asks(v1alpha1.Verb{Do: v1alpha1.DoRollback, Number: history[i].Number})
	f.completes(revision)
}

// breaks turns to a revision that is bad: it stops by itself. Its nodes fail while no replica leads, so that the next
// one sees several at once: their events are of one version of the Rollout, and the recorder patches the first.
func (f *fleet) breaks(revision string) {
	f.t.Helper()
	leads, waits := f.leader()
	f.turn(revision, v1alpha1.Class(rollout.NonIntrusive))
	f.eventually("several nodes have begun", func() error {
		if c := f.rollout().Status.Counts; c == nil || c.InFlight < 2 {
			return fmt.Errorf("it has %+v", c)
		}
		return nil
	})
	leads.process.Kill()
	f.doomed.Store(true)
	f.eventually("the other replica leads", func() error { return waits.says(`belay_leader{name="rollout-default"} 1`) })
	leads.start()
	f.is(rollout.Frozen, revision)
	f.eventually("nodes that had begun have ended: what fails after an acceptance stops it again", func() error {
		if c := f.rollout().Status.Counts; c == nil || c.InFlight > 0 {
			return fmt.Errorf("it has %+v", c)
		}
		return nil
	})
	f.asks(v1alpha1.Verb{Do: v1alpha1.Do(rollout.Accept)})
}
