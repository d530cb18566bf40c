// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"
)

// strays notes that the Node of the present instance, which is stopped, is to be removed when the workload API answers.
func (p *pass) strays() {
	s := Stray{Token: p.s.Token, Since: p.Now}
	if p.s.Node != nil {
		s.Name = p.s.Node.Name
	}
	if !slices.ContainsFunc(p.s.Strays, func(o Stray) bool { return o.Token == s.Token }) {
		p.s.Strays = append(p.s.Strays, s)
	}
}

// said has what was passed stored before anything follows: the machine may be gone after that, and with it what nobody has read.
func (p *pass) said() Decision { return Decision{Status: p.s, Store: true, After: time.Second} }

// awaitStrays keeps a machine that is to be let go of as long as a Node of it may be left behind, unless somebody says not to wait for that.
func (p *pass) awaitStrays() (Decision, bool) {
	i := waitedFor(p.s.Strays)
	switch {
	case i < 0:
		return Decision{}, false
	case p.overridden("node"):
		for i := range p.s.Strays {
			if s := &p.s.Strays[i]; s.Left == "" {
				s.Left = "the annotation " + OverrideAnnotation
			}
		}
		p.step(StepNode, "")
		return p.said(), true
	}
	return p.wait(StepNode, p.s.Strays[i].why(p.NodesKnown), pollSlow), true
}

// tidy has a stray removed when there is nothing else to do: it keeps no machine from its work.
func (p *pass) tidy(d Decision) Decision {
	i := waitedFor(d.Status.Strays)
	if i < 0 || d.Action.Kind != None || d.Store || p.Machine.Spec.Paused || len(p.Twins) > 0 {
		return d
	}
	if p.NodesKnown && !p.NodeAsked {
		d.Action = Action{Kind: RemoveNode, Token: d.Status.Strays[i].Token}
	} else if d.After == 0 || d.After > pollSlow {
		d.After = pollSlow
	}
	return d
}

// waitedFor is the first stray that is to be removed; negative if there is none.
func waitedFor(all []Stray) int {
	return slices.IndexFunc(all, func(s Stray) bool { return s.Left == "" })
}

// why is what a stray waits for.
func (s Stray) why(known bool) string {
	node := fmt.Sprintf("the Node of instance %q", s.Token)
	if s.Name != "" {
		node = fmt.Sprintf("Node %q", s.Name)
	}
	switch {
	case !known:
		return fmt.Sprintf("node: the workload API doesn't answer: %s is removed when it does", node)
	case s.Blocker != "":
		return fmt.Sprintf("node: %s: %s", node, s.Blocker)
	}
	return fmt.Sprintf("node: %s is still to be removed", node)
}

// removed is what came of the removal of Nodes: of the present instance, or of a stray.
func (l *learner) removed() {
	if l.a.Token == "" {
		l.passed()
		return
	}
	i := slices.IndexFunc(l.s.Strays, func(s Stray) bool { return s.Token == l.a.Token })
	switch {
	case i < 0:
	case l.o.Done && l.o.Err == nil:
		l.s.Strays = slices.Delete(l.s.Strays, i, i+1)
	default:
		l.s.Strays[i].Blocker = l.words()
	}
}
