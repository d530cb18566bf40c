// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"
)

// simNotes are what is written down of a simulation.
type simNotes struct {
	course Course
	// stage is the one under way.
	stage int
	// turns are the numbers of the turns under way, by UID.
	turns map[string]int
	// waiting is what each member waits for, all what anybody does, at the time of the last note.
	waiting []simWait
	all     []simAll
	last    *plan
	noted   time.Time
}

// A simWait is what a node waits for, since when, and what it has waited for before.
type simWait struct {
	why   *Why
	since time.Time
	past  []Wait
}

// A simAll is for how long any node waits for something.
type simAll struct {
	Wait
	now bool
}

// begin notes what is under way.
func (w *simWorld) begin(p *plan) {
	w.course = Course{Begin: w.now, Stages: make([]StageCourse, len(p.policy.Stages))}
	for i := range w.course.Stages {
		w.course.Stages[i].Name = p.policy.Stages[i].Name
	}
	w.stage, w.turns, w.noted = -1, map[string]int{}, w.now
	w.waiting = make([]simWait, len(p.nodes))
	for i := range p.ledger.Slots {
		s := &p.ledger.Slots[i]
		if s.Rollout != p.policy.UID {
			continue
		}
		e := p.progress.Nodes[s.UID]
		t := Turn{Node: s.Node, UID: s.UID, Stage: e.Stage, Begin: e.Admitted}
		switch {
		case e.Admitted.IsZero():
			t.Begin, t.Stage = w.now, p.progress.Stage
		case e.Attempts > 0: // its next attempt may have begun long after it got its slot
			t.Begin = e.Since
		}
		w.turns[s.UID] = len(w.course.Turns)
		w.course.Turns = append(w.course.Turns, t)
	}
}

// turn notes that an attempt begins.
func (w *simWorld) turn(p *plan, n *Node, retry bool) {
	stage := min(p.progress.Stage, len(p.stages)-1)
	t := &w.waiting[w.known.index[n.UID]]
	w.turns[n.UID] = len(w.course.Turns)
	w.course.Turns = append(w.course.Turns, Turn{Node: n.Name, UID: n.UID, Stage: stage, Begin: w.now, Retry: retry, Waits: t.past})
	t.past = nil
	if stage < len(w.course.Stages) {
		w.course.Stages[stage].Turns++
	}
	w.course.End = w.now
}

// end notes that a slot is free.
func (w *simWorld) end(uid string) {
	if i, ok := w.turns[uid]; ok {
		w.course.Turns[i].End, w.course.End = w.now, w.now
		delete(w.turns, uid)
	}
}

// note writes down what a plan says of those who wait.
func (w *simWorld) note(p *plan) {
	w.last = p
	w.elapse()
	w.noteStage(p.progress.Stage)
	var last *Why
	for i := range p.nodes {
		m, t := &p.nodes[i], &w.waiting[i]
		why := p.waitsFor(m)
		if why != nil && why != last {
			w.any(why)
			last = why
		}
		if why != nil && t.why != nil && why.Reason == t.why.Reason || why == t.why {
			continue
		}
		t.close(w.now)
		t.why, t.since = why, w.now
	}
}

// waitsFor is what holds a node up: nil if it does not want to go or is in flight without trouble.
func (p *plan) waitsFor(m *member) *Why {
	switch m.class {
	case waiting, deferred, resting, givenUp, lost:
		if m.do == stepAdmit || m.flight >= 0 {
			return nil
		}
		return m.why
	case flying, broken, spent:
		if m.flight < 0 {
			return nil
		}
		if f := &p.flights[m.flight]; f.do == "" && (f.why.Reason != ReasonInFlight || f.slot.State != "") {
			return f.why
		}
	}
	return nil
}

func (t *simWait) close(now time.Time) {
	if d := now.Sub(t.since); t.why != nil && d > 0 {
		t.past = addWait(t.past, t.why, d)
	}
}

// addWait adds to the time of one reason.
func addWait(waits []Wait, why *Why, d time.Duration) []Wait {
	for i := range waits {
		if waits[i].Reason == why.Reason {
			waits[i].For += d
			return waits
		}
	}
	return append(waits, Wait{Reason: why.Reason, Message: why.Message, For: d})
}

// any notes that some node waits for something from now on.
func (w *simWorld) any(why *Why) {
	for i := range w.all {
		if w.all[i].Reason == why.Reason {
			w.all[i].now = true
			return
		}
	}
	w.all = append(w.all, simAll{Wait: Wait{Reason: why.Reason, Message: why.Message}, now: true})
}

// elapse adds the time since the last note to what was waited for then.
func (w *simWorld) elapse() {
	d := w.now.Sub(w.noted)
	for i := range w.all {
		if w.all[i].now {
			w.all[i].For += d
			w.all[i].now = false
		}
	}
	w.noted = w.now
}

// noteStage notes that stages were passed.
func (w *simWorld) noteStage(stage int) {
	if stage == w.stage {
		return
	}
	for i := max(0, w.stage); i < min(stage, len(w.course.Stages)) && w.stage >= 0; i++ {
		w.course.Stages[i].End = w.now
		if i > w.stage {
			w.course.Stages[i].Begin = w.now
		}
	}
	if stage < len(w.course.Stages) {
		w.course.Stages[stage].Begin = w.now
	}
	w.stage, w.course.End = stage, w.now
}

// stop puts together what was found.
func (w *simWorld) stop(ending Ending) Course {
	p, c := w.last, &w.course
	w.elapse()
	if c.Ending = ending; ending == endOfTime || ending == endOfSteps {
		c.End = w.now
	}
	counts, reasons := Counts{}, map[Reason]int{}
	for _, i := range p.ordered {
		m, t := &p.nodes[i], &w.waiting[i]
		counts.tally(m)
		t.close(w.now)
		if why := p.waitsFor(m); why != nil {
			if m.flight < 0 && (m.class == waiting || m.class == deferred || m.class == resting) {
				reasons[why.Reason]++
			}
			c.Left = append(c.Left, Left{Node: m.node.Name, UID: m.node.UID, Why: *why, Waits: t.past})
		}
	}
	c.Phase = p.progress.Phase
	c.Reason, c.Message = p.summary(counts, reasons)
	w.sumUp()
	return *c
}

// sumUp counts who has waited for what.
func (w *simWorld) sumUp() {
	nodes := map[Reason]map[string]bool{}
	count := func(uid string, waits []Wait) {
		for _, wait := range waits {
			if nodes[wait.Reason] == nil {
				nodes[wait.Reason] = map[string]bool{}
			}
			nodes[wait.Reason][uid] = true
		}
	}
	for _, t := range w.course.Turns {
		count(t.UID, t.Waits)
	}
	for i := range w.waiting {
		count(w.base[i].node.UID, w.waiting[i].past)
	}
	for _, a := range w.all {
		if a.Nodes = len(nodes[a.Reason]); a.For > 0 && a.Nodes > 0 {
			w.course.Waits = append(w.course.Waits, a.Wait)
		}
	}
	slices.SortStableFunc(w.course.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Reason, b.Reason))
	})
}
