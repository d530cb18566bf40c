// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// A simWorld is a fleet that does what it is told, as long as all goes well.
type simWorld struct {
	policy     Policy
	snapshot   Snapshot
	now, until time.Time
	cycle      time.Duration
	steps      int
	approve    time.Duration
	// approval is when somebody promotes the stage that waits for it; zero if none does.
	approval time.Time

	// first is the first plan: which node belongs to what does not change. nodes are those that the plan at hand works on.
	first *plan
	nodes []member
	base  []member
	known *known
	// ends are when the attempts under way end, by UID; held are those whose drain was blocked.
	ends map[string]time.Time
	held map[string]bool
	simNotes
}

func newSimWorld(s Snapshot, policy Policy, now time.Time, a Assumptions, cycle time.Duration) *simWorld {
	w := &simWorld{
		policy: policy, snapshot: s, now: now.Round(0), until: now.Round(0).Add(a.Within), cycle: cycle, steps: a.Steps, approve: a.ApproveAfter,
		ends: map[string]time.Time{}, held: map[string]bool{},
		known: &known{index: make(map[string]int32, len(s.Nodes))},
	}
	w.policy.Prefetch = nil // it changes nothing of what is simulated
	w.policy.Cycle = orDefault(policy.Cycle, a.WorstCycle)
	// An attempt that goes well meets its deadlines.
	w.policy.ApplyWithin = max(cycle, orDefault(policy.ApplyWithin, defaultApply))
	w.policy.VerifyWithin = max(cycle, orDefault(policy.VerifyWithin, defaultVerify))
	w.snapshot.Nodes = slices.Clone(s.Nodes)
	for i := range w.snapshot.Nodes {
		w.snapshot.Nodes[i].Health.RetryAfter = 0 // the answer stays the same
	}
	w.snapshot.Gates = slices.Clone(s.Gates)
	for i := range w.snapshot.Gates {
		w.snapshot.Gates[i].RetryAfter = 0
	}
	w.first = newPlan(&w.snapshot, &w.policy, w.now, &scratch{})
	w.nodes, w.base = w.first.nodes, slices.Clone(w.first.nodes)
	for i := range w.base {
		w.known.index[w.base[i].node.UID] = int32(i)
	}
	w.begin(w.first)
	return w
}

// run decides and obeys until nothing follows any more.
func (w *simWorld) run() (Course, error) {
	for {
		p := w.plan()
		if err := p.run(); err != nil {
			return w.course, err
		}
		p.progress.Phase = p.phase()
		asked := p.progress.Stopped != w.snapshot.Progress.Stopped // the next plan closes the ledger
		w.snapshot.Ledger, w.snapshot.Progress = p.ledger.Ledger, p.progress
		w.learn(p)
		w.course.Steps++
		w.note(p)
		again, err := w.obey(p)
		if err != nil {
			return w.course, err
		}
		if again = again || asked; again && w.course.Steps < w.steps {
			continue
		}
		next := w.next(p)
		switch {
		case again:
			return w.stop(endOfSteps), nil
		case next.IsZero() && p.progress.Stage < len(p.stages):
			return w.stop(EndStalled), nil
		case next.IsZero():
			return w.stop(EndCompleted), nil
		case next.After(w.until):
			w.now = w.until
			return w.stop(endOfTime), nil
		case w.course.Steps >= w.steps:
			return w.stop(endOfSteps), nil
		}
		w.pass(next)
	}
}

// plan is what [newPlan] returns, without finding out anew what belongs to what.
func (w *simWorld) plan() *plan {
	copy(w.nodes, w.base)
	f := w.first
	p := &plan{
		policy: f.policy, snapshot: f.snapshot, now: w.now, mem: &scratch{}, stages: f.stages, cycle: f.cycle, ledger: w.snapshot.Ledger.Draft(), progress: w.snapshot.Progress,
		nodes: w.nodes, zones: f.zones, keyOf: f.keyOf, targets: f.targets, sizes: f.sizes, found: f.found, taken: f.taken,
	}
	if w.course.Steps > 0 {
		p.before = w.known
		p.appended = true // the outcomes are our own since
	}
	p.assign()
	return p
}

// learn keeps what helps the next plan.
func (w *simWorld) learn(p *plan) {
	w.known.ordered = p.ordered
	if w.course.Steps > 0 {
		return
	}
	for i := range w.base {
		w.base[i].joined = w.nodes[i].joined
	}
	w.snapshot.Progress.Outcomes = slices.Clip(p.progress.Outcomes)
}

// next is when something happens next; zero if nothing does.
func (w *simWorld) next(p *plan) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, end := range w.ends {
		sooner(end)
	}
	if p.after > 0 {
		sooner(w.now.Add(p.after))
	}
	if p.holdWhy == nil || p.holdWhy.Reason != ReasonApproval || w.approve == 0 {
		w.approval = time.Time{}
	} else if w.approval.IsZero() {
		w.approval = w.now.Add(w.approve)
	}
	sooner(w.approval)
	return next
}

// pass lets the time pass.
func (w *simWorld) pass(now time.Time) {
	w.now = now
	for i := range w.snapshot.Ledger.Slots {
		uid := w.snapshot.Ledger.Slots[i].UID
		if end, ok := w.ends[uid]; ok && !end.After(now) {
			delete(w.ends, uid)
			w.arrive(uid)
		}
	}
	if !w.approval.IsZero() && !w.approval.After(now) {
		w.approval = time.Time{}
		w.policy.Verb = Verb{Request: fmt.Sprintf("simulated-%d", w.course.Steps), Do: Promote}
	}
}

// arrive brings an attempt to its good end.
func (w *simWorld) arrive(uid string) {
	n := w.nodes[w.known.index[uid]].node
	sh := *n.Shadow
	for _, e := range []protocol.Event{protocol.EventApplied, protocol.EventVerified} {
		if r, err := sh.Answer(e); err == nil { // it may be further
			sh.Report = r
		}
	}
	n.Shadow, n.Runs = &sh, protocol.ParseRevision(sh.Report.Revision)
	n.Away, n.Health.Answer, n.Drain = "", Allow, Drain{}
}

// obey does what was decided. It reports whether there is something that the next plan may decide on at this moment.
func (w *simWorld) obey(p *plan) (again bool, err error) {
	busy, released := false, false
	for i := range p.flights {
		f := &p.flights[i]
		if f.do == protocol.EventRelease {
			released = true
			again = again || f.state != protocol.Done
			w.end(f.slot.UID)
			continue
		}
		changed, err := w.steer(p, f)
		if err != nil {
			return false, err
		}
		again = again || changed
		busy = busy || f.member >= 0 && p.nodes[f.member].class == flying && p.inStage(&p.nodes[f.member])
	}
	held, begun, err := w.departs(p)
	if again, busy = again || held, busy || begun; err != nil {
		return false, err
	}
	// That a slot is free may end the stage, and all else that it allows was decided with it.
	return again || released && !busy, nil
}

// departs has those depart that were admitted. It reports whether one of them is held up, and whether one is of the stage under way.
func (w *simWorld) departs(p *plan) (held, inStage bool, err error) {
	for _, i := range p.ordered {
		m := &p.nodes[i]
		if m.do != stepAdmit {
			continue
		}
		waits, err := w.depart(p, m)
		if err != nil {
			return false, false, err
		}
		held, inStage = held || waits, inStage || p.inStage(m)
	}
	return held, inStage, nil
}

// inStage reports whether a node is one of the stage under way.
func (p *plan) inStage(m *member) bool {
	stage := min(p.progress.Stage, len(p.stages)-1)
	return m.group >= 0 && (!m.joined || stage == len(p.stages)-1) && p.takes(stage, int(m.group))
}
