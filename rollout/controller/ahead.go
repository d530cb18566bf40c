// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// An ahead is what was decided of a rollout and is not stored yet: it goes on from what was stored then. A controller that dies has lost it, and the
// next one finds it again in the ledger and the shadows, but for times, and that a node which goes with it had been disturbed.
type ahead struct {
	stored  rollout.Progress
	decided rollout.Decisions
	policy  rollout.Policy // that was decided on
}

// catchUp has the rollouts go on from what was decided of them, unless something else was stored since.
func (p *pass) catchUp() {
	p.stored = make(map[string]rollout.Progress, len(p.rollouts))
	for i := range p.rollouts {
		r := &p.rollouts[i]
		uid := r.Policy.UID
		p.stored[uid] = r.Progress
		a, ok := p.c.mind.ahead[uid]
		if ok && p.c.equal.DeepEqual(a.stored, r.Progress) {
			r.Progress = a.decided.Progress
		} else if ok {
			delete(p.c.mind.ahead, uid)
		}
	}
}

// mayWait reports whether what was decided of a rollout need not be stored at once: somebody may be waiting to hear that no node commits any more.
func (p *pass) mayWait(i int) bool {
	uid, d := p.rollouts[i].Policy.UID, &p.decided[i]
	return p.refused[uid] == nil && d.Acknowledged == p.c.mind.acknowledged[uid] && p.isFound(d.Progress, p.stored[uid])
}

// goAhead goes on with what was decided of a rollout, and has it shown later.
func (p *pass) goAhead(i int) {
	r, d := &p.rollouts[i], p.decided[i]
	if _, none := r.Version.(orphan); !none {
		p.edges(*r, d)
	}
	p.c.mind.ahead[r.Policy.UID] = ahead{p.stored[r.Policy.UID], d, r.Policy}
	r.Progress = d.Progress
	p.mindOrphan(r)
	p.shown = append(p.shown, i)
}

// remember takes what was decided of a rollout as stored.
func (p *pass) remember(i int) {
	r := &p.rollouts[i]
	r.Progress = p.decided[i].Progress
	p.stored[r.Policy.UID] = r.Progress
	delete(p.c.mind.ahead, r.Policy.UID)
	p.c.mind.acknowledged[r.Policy.UID] = p.decided[i].Acknowledged
	p.mindOrphan(r)
}

// mindOrphan keeps what was decided of a rollout that is gone.
func (p *pass) mindOrphan(r *Rollout) {
	if _, none := r.Version.(orphan); none {
		p.c.mind.orphans[r.Policy.UID] = r.Progress
	}
}

// isFound reports whether all that is new since something was stored would be found again without: that nodes have got slots, how far they are, and that
// they have got there.
func (p *pass) isFound(now, stored rollout.Progress) bool {
	rest := now
	rest.Nodes, rest.Outcomes, rest.Cycles = stored.Nodes, stored.Outcomes, stored.Cycles
	rest.Rescue = now.Rescue || stored.Rescue // it ends with a success
	known := len(stored.Outcomes)
	if !p.c.equal.DeepEqual(rest, stored) || len(now.Outcomes) < known || !p.c.equal.DeepEqual(now.Outcomes[:known], stored.Outcomes) {
		return false
	}
	done := map[string]bool{}
	for _, o := range now.Outcomes[known:] {
		if o.Result != rollout.Succeeded {
			return false
		}
		done[o.UID] = true
	}
	for uid := range stored.Nodes {
		if _, there := now.Nodes[uid]; !there && !done[uid] {
			return false
		}
	}
	for uid, is := range now.Nodes {
		if !p.isOnItsWay(is, stored.Nodes[uid]) {
			return false
		}
	}
	return true
}

// isOnItsWay reports whether a node has only got a slot, or gone on in its attempt, since something was stored of it.
func (p *pass) isOnItsWay(is, was rollout.NodeProgress) bool {
	if is == was {
		return true
	}
	if _, flew := stateIn(was); !flew || was.Attempt == is.Attempt && was.Result == "" {
		if _, flies := stateIn(is); flies && is.Result == "" {
			was.Node, was.Attempt, was.State, was.Since, was.Admitted = is.Node, is.Attempt, is.State, is.Since, is.Admitted
			was.Stage, was.Critical, was.Result = is.Stage, is.Critical, is.Result
		}
	}
	return p.c.equal.DeepEqual(is, was)
}

// foretell stores what was decided before of the rollouts that are about to free a slot of which too little is stored: who knows of an attempt finds out
// how it has ended. It reports whether all of that is stored. A rollout of which it can't be decides nothing more in this pass. What was
// decided before was decided on a policy that could be followed, whatever has become of it since.
func (p *pass) foretell(next protocol.Ledger) (bool, error) {
	all := true
	for i := range p.rollouts {
		uid := p.rollouts[i].Policy.UID
		a, ok := p.c.mind.ahead[uid]
		if !ok || !p.frees(uid, next) {
			continue
		}
		now, policy := p.decided[i], p.rollouts[i].Policy
		p.decided[i], p.rollouts[i].Policy = a.decided, a.policy
		ok, err := p.store(i, true)
		p.decided[i], p.rollouts[i].Policy = now, policy
		if err != nil {
			return false, err
		}
		if !ok {
			all, p.rollouts[i].Invalid = false, errUnstored
		}
	}
	return all, nil
}

// frees reports whether a slot of a rollout is freed, or is for another attempt, of which what is stored does not know, or of a node that is gone and
// is not known to have come as far as it had.
func (p *pass) frees(rollout string, next protocol.Ledger) bool {
	a := p.c.mind.ahead[rollout]
	for i := range p.ledger.Slots {
		s := &p.ledger.Slots[i]
		if s.Rollout != rollout {
			continue
		}
		if is := next.Slot(s.UID); is != nil && is.Attempt == s.Attempt {
			continue
		}
		was, is := p.stored[rollout].Nodes[s.UID], a.decided.Progress.Nodes[s.UID]
		if is.Attempt == s.Attempt && (was.Attempt != s.Attempt || p.find(s.UID) == nil && was.State != is.State) {
			return true
		}
	}
	return false
}
