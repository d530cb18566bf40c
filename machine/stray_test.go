// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// back is a workload API that has come back.
func (l *life) back() {
	l.v.NodesKnown, l.v.Nodes, l.v.NodesUnknown = true, []machine.Node{node("n")}, time.Time{}
}

// released is a machine that was deleted while the workload API was away, and whose instance is gone.
func released(t *testing.T) *life {
	t.Helper()
	l := newLife(t, "worker")
	away(30 * time.Minute)(l)
	l.v.Machine.Deleted = l.v.Now
	escape{
		waits: 29 * time.Minute, step: machine.StepDraining, blocker: "the workload API doesn't answer", before: "AskGates", after: "AskGates Leave Stop Delete",
		overrides: []string{"drain: the workload API hasn't answered for 30m0s", "node: the workload API hasn't answered for 30m0s: it is removed when that answers"},
	}.test(l)
	since := l.v.Machine.Step.Since
	l.run(long)
	at := l.v.Machine
	if l.gone || at.Step.Name != machine.StepNode || at.Step.Blocker != `node: the workload API doesn't answer: Node "n" is removed when it does` || !at.Step.Since.Equal(since) {
		t.Fatalf("R-MA-02: it is gone: %v, or at %+v, with a Node that is left", l.gone, at.Step)
	}
	if s := at.Strays; len(s) != 1 || s[0].Token != at.Token || s[0].Since.IsZero() || s[0].Left != "" {
		t.Fatalf("R-MA-02: what is to be removed is %+v", s)
	}
	l.did = nil
	return l
}

// R-MA-02 and R-MA-18: a workload API that is away keeps no instance, and its Node is not forgotten for that: the machine stays, and says what it waits for, until the
// Node is removed, or until somebody says not to wait, which is stored before the machine goes.
func TestNodeIsNotLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		then func(l *life)
		// waits is the blocker that stays then; empty if the machine goes.
		waits, asked string
	}{
		"the API comes back":         {then: (*life).back, asked: "RemoveNode RemoveFinalizer"},
		"somebody does not wait":     {then: func(l *life) { l.overridden("drain,node") }, asked: "RemoveFinalizer"},
		"it is about something else": {then: func(l *life) { l.overridden("drain,leave") }, waits: "the workload API doesn't answer"},
		"the Node can't be removed": {then: func(l *life) { l.back(); stuck(machine.RemoveNode, blockedBy("forbidden"))(l) },
			waits: `node: Node "n": forbidden`, asked: "RemoveNode"},
		"it is paused": {then: func(l *life) { l.back(); l.v.Machine.Spec.Paused = true }, waits: "paused by spec.paused"},
	} {
		t.Run(name, func(t *testing.T) {
			l := released(t)
			c.then(l)
			l.run(time.Hour)
			if l.asked() != c.asked || l.gone != (c.waits == "") || !strings.Contains(l.v.Machine.Step.Blocker, c.waits) {
				t.Errorf("R-MA-02: %q was asked for, gone is %v, it is at %+v", l.asked(), l.gone, l.v.Machine.Step)
			}
		})
	}
	l := released(t)
	l.overridden("node")
	d := machine.Decide(l.v)
	if s := d.Status.Strays; !d.Store || d.Action.Kind != machine.None || len(s) != 1 || s[0].Left != byAnnotation {
		t.Errorf("R-MA-02: who does not wait is not stored before anything follows: %+v", d)
	}
}
