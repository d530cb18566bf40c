// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// agent lets the agent of a node take each step that it may: it brings its report up to date, answers a grant, or goes on.
func (w *walk) agent(s state, i int) {
	n := s.nodes[i]
	sh, disk := w.shadows.all[n.shadow], w.reports.all[n.disk]
	if r, changed := protocol.Recall(sh, disk); changed {
		w.report(s, i, sh, r, "recall")
		if sh.Report.Phase == protocol.PhaseCommitted && r.Phase == protocol.PhaseApplying { // or it lives, and says what came of it
			w.phases(s, i, sh, protocol.EventApplied, protocol.EventFellBack, protocol.EventBroke)
		}
		return
	}
	w.commit(s, i)
	if w.o.Phases {
		w.phases(s, i, sh, protocol.EventUndone, protocol.EventApply, protocol.EventApplied, protocol.EventFellBack, protocol.EventBroke,
			protocol.EventVerified)
		return
	}
	if r, err := through(sh); err == nil {
		w.report(s, i, sh, r, "end")
	}
}

// phases takes each of these steps that the agent may take on a version of its shadow, and lets it die on the way.
func (w *walk) phases(s state, i int, sh protocol.Shadow, events ...protocol.Event) {
	for _, e := range events {
		if r, err := sh.Answer(e); err == nil {
			w.report(s, i, sh, r, string(e))
			w.dies(s, i, r, e)
		}
	}
}

// commit takes the grant that the agent sees: in the live version of its shadow, by compare-and-swap.
func (w *walk) commit(s state, i int) {
	n := s.nodes[i]
	versions := []uint16{n.shadow}
	if w.o.Without == CommitCAS {
		versions = n.shadows
	}
	live := w.shadows.all[n.shadow]
	for _, v := range versions {
		r, err := w.shadows.all[v].Answer(protocol.EventCommit)
		if err != nil || uint16(r.Attempt) <= n.last && v != n.shadow {
			continue
		}
		k := uint16(r.Attempt)
		w.marks[w.at] |= 1 << i
		if s.acked {
			w.breaks(fmt.Sprintf("I2: n%d commits attempt %d after the stop was acknowledged", i, k), fmt.Sprintf("commit n%d a%d", i, k))
			return
		}
		if k <= n.last {
			w.breaks(fmt.Sprintf("I3: n%d commits attempt %d after %d", i, k, n.last), fmt.Sprintf("commit n%d a%d", i, k))
			return
		}
		live.Report = r
		next := w.wrote(n, w.shadows.number(live))
		next.disk, next.down, next.last = w.reports.number(r), true, k
		w.follow(s.put(i, next), "commit n%d a%d", i, k)
		if w.o.Phases {
			w.dies(s, i, r, protocol.EventCommit)
		}
	}
}

// report stores what the agent says. A node whose report is at rest is not disrupted.
func (w *walk) report(s state, i int, sh protocol.Shadow, r protocol.Report, name string) {
	n := s.nodes[i]
	sh.Report = r
	next := w.wrote(n, w.shadows.number(sh))
	next.disk = w.reports.number(r)
	next.down = n.down && !r.Phase.AtRest()
	w.follow(s.put(i, next), "%s n%d a%d", name, i, r.Attempt)
}

// dies leaves on the disk what the agent could not report any more. Of a commit it says nothing; of an end it is the truth.
func (w *walk) dies(s state, i int, r protocol.Report, e protocol.Event) {
	n := s.nodes[i]
	id := w.reports.number(r)
	if n.disk == id {
		return
	}
	n.disk = id
	n.down = n.down && !r.Phase.AtRest()
	w.follow(s.put(i, n), "n%d dies before it can report %s a%d", i, e, r.Attempt)
}

// through takes a committed attempt to its end, in the steps of production.
func through(sh protocol.Shadow) (r protocol.Report, err error) {
	if sh.Orders, err = sh.Go(sh.Report.Attempt); err != nil {
		return r, err
	}
	for _, e := range []protocol.Event{protocol.EventApply, protocol.EventApplied, protocol.EventVerified} {
		if sh.Report, err = sh.Answer(e); err != nil {
			return r, err
		}
	}
	return sh.Report, nil
}
