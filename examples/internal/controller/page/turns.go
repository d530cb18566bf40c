// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
)

// turns knows in which stage nodes have had their turn. What is decided says only in which one a node has it now: for one that is done that is the
// stage under way, as for any other.
type turns struct {
	v     *view.Rollout
	ended map[string]int // UID, and the number of its outcome
}

func turnsOf(v *view.Rollout) turns {
	t := turns{v, make(map[string]int, len(v.Snapshot.Progress.Outcomes))}
	for i, o := range v.Snapshot.Progress.Outcomes {
		t.ended[o.UID] = i
	}
	return t
}

// stage is that in which a node has its turn, or has had it.
func (t turns) stage(d *rollout.Decision) int32 {
	p := &t.v.Snapshot.Progress
	if d.Stage < 0 {
		return NoStage
	}
	if e, known := p.Nodes[d.UID]; known && e.Attempt > 0 {
		return int32(min(max(e.Stage, 0), max(len(t.v.Policy.Stages)-1, 0)))
	}
	ended, had := t.ended[d.UID]
	switch {
	case !had || ended >= p.StageFrom:
		return d.Stage
	case p.Stage == 1:
		return 0
	}
	return Passed
}
