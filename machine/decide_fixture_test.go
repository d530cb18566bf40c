// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// A life is one machine that is decided on again and again, with an answer for each thing that is asked.
type life struct {
	t *testing.T
	v machine.View
	// answers are those that are not "done".
	answers map[machine.ActionKind]machine.Outcome
	// did is what was asked, without what came again at once; overrides is what was passed without being done.
	did, overrides []string
	gone           bool
}

// newLife is a machine that runs.
func newLife(t *testing.T, r ...string) *life {
	m := machine.Machine{Key: key("a"), UID: "uid-a", Generation: 1, Created: noon.Add(-time.Hour), Finalizer: true}
	m.Spec.Config, m.Spec.Roles = []byte(`{"image":"a"}`), r
	m.Spec.ProviderID = "memory:///c1-a-1"
	m.Status = machine.Status{
		Phase: machine.PhaseRunning, Step: machine.Step{Name: machine.StepReady, Since: noon.Add(-time.Hour)}, Incarnation: 1, Token: "c1-a-1", Digest: m.Spec.Digest(),
		Instance: &provider.Instance{Token: "c1-a-1", ProviderID: m.Spec.ProviderID, State: provider.Running}, Node: &machine.NodeRef{Name: "n", UID: "node-n"},
	}
	return &life{t: t, answers: map[machine.ActionKind]machine.Outcome{}, v: machine.View{
		Machine: m, Now: noon, Cluster: "c1", NodesKnown: true, Nodes: []machine.Node{node("n")}, Backup: true,
		Can: machine.Can{Get: true, Plan: true, Update: true, Stop: true, Adopt: true},
	}}
}

func node(name string) machine.Node {
	return machine.Node{NodeRef: machine.NodeRef{Name: name, UID: "node-" + name}, Ready: true, ProviderID: "memory:///c1-a-1"}
}

// run looks at the machine once a minute for some time.
func (l *life) run(d time.Duration) {
	l.t.Helper()
	for end := l.v.Now.Add(d); l.v.Now.Before(end) && !l.gone; l.v.Now = l.v.Now.Add(time.Minute) {
		l.v.NodesLive, l.v.Agreed, l.v.Asked, l.v.NodeAsked, l.v.NodeStarted, l.v.Fresh = false, false, false, false, false, false
		steps := 0
		for l.step() {
			if steps++; steps > 64 {
				l.t.Fatalf("no end of a pass: %v", l.did[len(l.did)-10:])
			}
		}
	}
}

// step decides once; goesOn means that something was done, and that there may be more.
func (l *life) step() (goesOn bool) {
	d := machine.Decide(l.v)
	l.v.Machine.Status = d.Status
	if r, u := d.Status.Release, d.Status.Update; r != nil && len(r.Overrides) > 0 {
		l.overrides = r.Overrides
	} else if u != nil && len(u.Overrides) > 0 {
		l.overrides = u.Overrides
	}
	a := d.Action
	if a.Kind == machine.None {
		return false
	}
	if n := len(l.did); n == 0 || l.did[n-1] != string(a.Kind) {
		l.did = append(l.did, string(a.Kind))
	}
	o, special := l.answers[a.Kind]
	if !special {
		o = l.done(a)
	}
	l.v.Machine.Status = machine.Learn(l.v.Machine, d.Status, a, o, l.v.Now)
	l.seen(a, o)
	return !l.gone && (calls[a.Kind] || o.Blocked == "" && o.Err == nil)
}

// calls are those of the provider: a pass goes on after one that has failed.
var calls = map[machine.ActionKind]bool{
	machine.Lookup: true, machine.Create: true, machine.PlanUpdate: true, machine.UpdateInstance: true, machine.Stop: true, machine.Delete: true,
}

// done is the answer of who does what is asked.
func (l *life) done(a machine.Action) machine.Outcome {
	o := machine.Outcome{Done: true, Progress: provider.Progress{Done: true, Stopped: true}}
	o.Plan = provider.Plan{Method: provider.InPlace, Disrupts: true}
	o.Instance = provider.Instance{Token: a.Token, ProviderID: "memory:///" + a.Token, State: provider.Running}
	return o
}

// seen is what the next decision of the pass sees of an action.
func (l *life) seen(a machine.Action, o machine.Outcome) {
	done := o.Err == nil && o.Blocked == ""
	l.v.Agreed = a.Kind == machine.AskGates && done
	if calls[a.Kind] {
		l.called(a.Kind, o)
	}
	switch a.Kind {
	case machine.FindNodes:
		l.v.NodesLive = done
	case machine.SetProviderID:
		l.v.Machine.Spec.ProviderID = a.ProviderID
	case machine.StartNode:
		l.v.NodeStarted = done
	case machine.Drain, machine.Uncordon:
		l.v.Nodes = slices.Clone(l.v.Nodes)
		l.v.Nodes[0].Held = a.Kind == machine.Drain
	case machine.RemoveNode:
		if done {
			l.v.Nodes = nil
		}
	case machine.RemoveFinalizer:
		l.gone = true
	}
}

// called is what it sees of a call of the provider.
func (l *life) called(kind machine.ActionKind, o machine.Outcome) {
	switch kind {
	case machine.Lookup:
		l.v.Fresh, l.v.Asked = o.Err != nil, o.Err == nil
		return
	case machine.PlanUpdate:
	default:
		l.v.Asked = kind == machine.Create || !o.Progress.Done
	}
	if o.Err != nil {
		l.v.NotBefore = l.v.Now.Add(30 * time.Second)
	}
}

// asked is what was asked, in one line.
func (l *life) asked() string { return strings.Join(l.did, " ") }

// overridden writes the annotation.
func (l *life) overridden(what string) {
	l.v.Machine.Annotations = map[string]string{machine.OverrideAnnotation: what}
}
