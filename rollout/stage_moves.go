// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// wholeStage is the name of the one stage of a policy that has none.
const wholeStage = "all"

func (p *plan) stageNames() []string {
	names := make([]string, len(p.stages))
	for i := range p.stages {
		if names[i] = p.stages[i].Name; names[i] == "" {
			names[i] = wholeStage
		}
	}
	return names
}

// renumber makes the numbers of stages in the progress those that the stages have by now, by their names: somebody may have put in a stage, or taken
// one away. What comes before the stage under way counts as passed. One that is gone makes way for the stage that follows those that were passed. A
// rollout that has passed all its stages has passed new ones too: its nodes have had their turn.
func (p *plan) renumber() {
	was, names := p.progress.Stages, p.stageNames()
	if slices.Equal(was, names) {
		return
	}
	p.progress.Stages = names
	if was == nil { // by a version that has kept no names
		return
	}
	at, to := p.progress.Stage, moved(was, names, p.progress.Stage)
	stays := at >= len(was) || to < len(names) && was[at] == names[to]
	promoted := stays && p.progress.Promoted > at
	p.progress.Stage, p.progress.Promoted = to, 0
	if promoted {
		p.progress.Promoted = to + 1
	}
	if !stays {
		p.progress.StageFrom, p.progress.SoakSince = len(p.progress.Outcomes), time.Time{}
	}
	for _, uid := range p.remembered() {
		if e := p.progress.Nodes[uid]; moved(was, names, e.Stage) != e.Stage {
			e.Stage = moved(was, names, e.Stage)
			p.remember(uid, e)
		}
	}
}

// moved is the number that a stage has now. One that is gone has that of the stage after the last one before it that is still there.
func moved(was, names []string, i int) int {
	if i >= len(was) {
		return len(names)
	}
	if j := slices.Index(names, was[i]); j >= 0 {
		return j
	}
	for _, name := range slices.Backward(was[:i]) {
		if j := slices.Index(names, name); j >= 0 {
			return j + 1
		}
	}
	return 0
}
