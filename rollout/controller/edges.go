// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/internal/eventnote"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// edges tells of what has changed between what is remembered of a rollout and what was stored in its place.
func (p *pass) edges(r Rollout, d rollout.Decisions) {
	if f := p.c.o.Metrics.Rollout; f != nil {
		f(r.Name, d.Phase, d.Counts, d.Waiting)
		p.c.mind.shown[r.Name] = true
	}
	if from := r.Progress.Phase; from != d.Phase {
		if f := p.c.o.Notify; f != nil {
			f(Notice{Rollout: r.Name, UID: r.Policy.UID, From: from, To: d.Phase, Reason: d.Reason, Message: d.Message})
		}
		kind := corev1.EventTypeNormal
		if d.Phase == rollout.Frozen {
			kind = corev1.EventTypeWarning
		}
		p.event(r, kind, string(d.Phase), d.Message)
	}
	if p.refused[r.Policy.UID] != nil && d.Reason != ReasonStopped {
		return
	}
	decided := make(map[string]*rollout.Decision, len(d.Nodes))
	for i := range d.Nodes {
		decided[d.Nodes[i].UID] = &d.Nodes[i]
	}
	was, is := r.Progress.Nodes, d.Progress.Nodes
	uids := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(uids)
	for _, uid := range slices.Compact(uids) {
		p.edge(&r, &d, uid, was[uid], is[uid], decided[uid])
	}
}

// departed tells of the rollouts that are gone.
func (p *pass) departed() {
	for name := range p.c.mind.shown {
		if !slices.ContainsFunc(p.rollouts, func(r Rollout) bool { return r.Name == name }) {
			if f := p.c.o.Metrics.Rollout; f != nil {
				f(name, "", rollout.Counts{}, nil)
			}
			if f := p.c.o.Metrics.Stalled; f != nil {
				f(name, "")
			}
			delete(p.c.mind.shown, name)
		}
	}
}

// stalls tells which rollouts show that they don't go on by themselves.
func (p *pass) stalls() {
	f := p.c.o.Metrics.Stalled
	if f == nil {
		return
	}
	for i := range p.rollouts {
		r := &p.rollouts[i]
		if _, none := r.Version.(orphan); !none {
			f(r.Name, r.Stalled)
			p.c.mind.shown[r.Name] = true
		}
	}
}

// edge tells of one node. Nodes that have no slot are at rest.
func (p *pass) edge(r *Rollout, d *rollout.Decisions, uid string, was, is rollout.NodeProgress, now *rollout.Decision) {
	from, flew := stateIn(was)
	to, flies := stateIn(is)
	if !flew && !flies && !fellBack(was, is) {
		return
	}
	before, after := p.revisions(r, uid, now)
	if flew && !flies && now != nil && now.Do == protocol.EventRelease && from != now.State {
		p.transition(from, now.State, before, after)
		from = now.State
	}
	p.transition(from, to, before, after)
	result := is.Result
	if !flies {
		result = resultOf(d, uid, is, now)
	}
	if result != "" && (result != was.Result || is.Attempt != 0 && is.Attempt != was.Attempt) {
		p.tellEnd(r, cmp.Or(is.Node, was.Node), before, after, result)
	}
}

// tellEnd tells of an attempt that has ended on a node.
func (p *pass) tellEnd(r *Rollout, node, before, after string, result rollout.Result) {
	if f := p.c.o.Metrics.Update; f != nil {
		f(before, after, result)
	}
	if isFailure(result) {
		p.event(*r, corev1.EventTypeWarning, string(result), fmt.Sprintf("node %q has ended as %s", node, result))
	}
}

// stateIn is the state of a node by what is remembered of it, and whether it has a slot.
func stateIn(e rollout.NodeProgress) (s protocol.State, flies bool) {
	if e.Admitted.IsZero() {
		return protocol.Resting, false
	}
	return e.State, true
}

// fellBack reports whether a node has fallen back just now; that it had no slot then is what it is about.
func fellBack(was, is rollout.NodeProgress) bool {
	return is.Result == rollout.FellBack && (was.Result != rollout.FellBack || was.Attempt != is.Attempt)
}

func isFailure(r rollout.Result) bool {
	return slices.Contains([]rollout.Result{rollout.FailedClean, rollout.FailedBroken, rollout.Suspected, rollout.Lost, rollout.FellBack}, r)
}

// resultOf is how the attempt of a node has ended.
func resultOf(d *rollout.Decisions, uid string, is rollout.NodeProgress, now *rollout.Decision) rollout.Result {
	if is.Result != "" {
		return is.Result
	}
	if now != nil && now.State == protocol.Done {
		return rollout.Succeeded
	}
	for i := len(d.Progress.Outcomes) - 1; i >= 0; i-- {
		if o := &d.Progress.Outcomes[i]; o.UID == uid {
			return o.Result
		}
	}
	return ""
}

func (p *pass) transition(from, to protocol.State, before, after string) {
	if f := p.c.o.Metrics.Transition; f != nil && from != to {
		f(from, to, before, after)
	}
}

// revisions are what a node comes from and goes to.
func (p *pass) revisions(r *Rollout, uid string, now *rollout.Decision) (from, to string) {
	to = r.Policy.Target.Name
	if now != nil && now.Group >= 0 && int(now.Group) < len(r.Policy.Groups) {
		if own := r.Policy.Groups[now.Group].Target; own != nil {
			to = own.Name
		}
	}
	n := p.find(uid)
	if n == nil {
		return p.bounded(""), p.bounded(to)
	}
	if n.shadow != nil {
		from = n.shadow.Runs.Name
		if s := p.ledger.Slot(uid); s != nil && n.shadow.Orders.Grant >= s.Attempt {
			to = protocol.ParseRevision(n.shadow.Orders.Revision).Name
		}
	}
	if n.mark.Rollout == r.Policy.UID {
		from = n.mark.From
	}
	return p.bounded(from), p.bounded(to)
}

// bounded keeps the number of names that metrics are told within limits.
func (p *pass) bounded(name string) string {
	known := p.c.mind.revisions
	if name == "" || known[name] {
		return name
	}
	if len(known) >= maxRevisions {
		return otherRevision
	}
	known[name] = true
	return name
}

func (p *pass) event(r Rollout, kind, reason, note string) {
	if p.c.o.Recorder != nil && r.Object != nil {
		p.c.o.Recorder.Eventf(r.Object, nil, kind, reason, "Rollout", "%s", eventnote.ClipNote(note))
	}
}
