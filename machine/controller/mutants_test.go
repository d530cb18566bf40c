// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-02: each way to break a machine's life is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a token is not stored before its instance is asked for", File: "../decide.go", Run: "TestKilled|TestChaos",
			Old: "	return p.store(p.making())\n}\n\n// recoverable", New: "	return Decision{Status: p.s, Action: p.making()}\n}\n\n// recoverable"},
		{Name: "the finalizer comes late", File: "../decide.go", Run: "TestChaos|TestFrozen",
			Old: "if !m.Finalizer {\n		return Decision{Status: p.s, Action: Action{Kind: SetFinalizer}}", New: "if false {\n		return Decision{}"},
		{Name: "a Node goes before the proof that its instance is stopped", File: "../release.go", Run: "TestTwoMethods",
			Old: "if r.Stopped && !r.NodeGone {", New: "if !r.NodeGone {"},
		{Name: "what was not stopped counts as stopped", File: "../learn.go", Run: "TestKilled|TestChaos",
			Old: "l.s.Release.Stopped = l.o.Progress.Done || l.o.Progress.Stopped", New: "l.s.Release.Stopped = true"},
		{Name: "the finalizer goes before the instance", File: "../release.go", Run: "TestKilled|TestChaos",
			Old: "case !r.Released:\n		return p.ask(StepReleasing, Action{Kind: Delete, Token: p.s.Token})", New: "case false:\n		return Decision{}"},
		{Name: "a replacement begins before the old instance is released", File: "../release.go", Run: "TestKilled|TestChaos",
			Old: "case !r.Released:\n		return p.ask", New: "case !r.Released && !r.Replace:\n		return p.ask"},
		{Name: "a slot is given back before the new instance works", File: "../decide.go", Run: "TestReplacementKeeps",
			Old: "if r != nil && r.Replace && r.Slot {", New: "if r != nil && false {"},
		{Name: "a retired machine is made again", File: "../decide.go", Run: "TestRetired",
			Old: "case p.s.Phase == PhaseRetired && m.Spec.Decommission:", New: "case false:"},
		{Name: "a machine that was moved has no instance", File: "../release.go", Run: "TestMoved",
			Old: "case p.recoverable() && p.Machine.Finalizer:", New: "case false:"},
		{Name: "slots of the dead are kept", File: "free.go", Run: "TestChaos",
			Old: "if err := p.c.o.Budget.Free(ctx, p.m.Key.String(), p.m.UID, loan); err != nil {", New: "if err := ctx.Err(); err != nil || loan == \"\\x00\" {"},
		{Name: "the end of a machine is not stored before it begins", File: "../release.go", Run: "TestGates",
			Old: "if p.Ungated && !p.Machine.Deleted.IsZero() && len(r.Overrides) == 0 {", New: "if true {"},
		{Name: "a conflict of tokens is for ever", File: "../learn.go", Run: "TestUsedUpToken",
			Old: "case class == provider.Conflict && l.a.Kind != Lookup:", New: "case false:"},
		{Name: "the gates are asked before the drain alone", File: "../release.go", Run: "TestGatesAreAskedAgain",
			Old: "case !r.Begun && !p.Ungated && !p.Agreed:", New: "case false:"},
		{Name: "an agreement of the gates is for ever", File: "act.go", Run: "TestGatesAreAskedLast",
			Old: "p.agreed = a.Kind == machine.AskGates && o.Done && o.Err == nil", New: "p.agreed = p.agreed || a.Kind == machine.AskGates && o.Done && o.Err == nil"},
		{Name: "a failure is not told", File: "act.go", Run: "TestFailedUpdate",
			Old: "s.Phase != machine.PhaseFailed || s.Failure == nil || before {", New: "s.Failure != nil || before {"},
		{Name: "whose end has begun can be counted on", File: "endgate.go", Run: "TestEndGate",
			Old: "r != nil && r.Begun && m.Deleted.IsZero() {", New: "r != nil && r.Begun && false {"},
		{Name: "who is not ready can be counted on", File: "endgate.go", Run: "TestEndGate",
			Old: "len(nodes) != 1 || !nodes[0].Ready", New: "len(nodes) > 9"},
		{Name: "a replacement has to be entered", File: "endgate.go", Run: "TestEndGate",
			Old: "machine.GateDecommission: machine.Ignore", New: "machine.GateUnknown: machine.Ignore"},
		{Name: "a cache is acted on", File: "reconcile.go", Run: "TestPause",
			Old: "if hasEffect(d.Action.Kind) && !p.live && !d.Store {", New: "if false {"},
		{Name: "each look reads the machine past the cache", File: "reconcile.go", Run: "TestLooksGo",
			Old: "k != machine.None && k != machine.Lookup", New: "k != machine.None"},
		{Name: "a start is asked for at every other look", File: "view.go", Run: "TestLooksGo",
			Old: "now.Sub(r.last) >= r.wait", New: "now.Sub(r.last) >= 0*r.wait"},
		{Name: "a slot of a machine that is gone is kept", File: "reconcile.go", Run: "TestFrozen",
			Old: "if mem.took != nil {", New: "if false {"},
		{Name: "a cache is believed that there is no Node", File: "../release.go", Run: "TestNodeThat", Old: "&& !p.NodesLive }", New: "&& false }"},
		{Name: "a cache is believed that a Node is gone", File: "../release.go", Run: "TestNodeThat",
			Old: "case p.NodesKnown && p.NodesLive:", New: "case p.NodesKnown && r != nil:"},
		{Name: "a Node that was registered anew counts as removed", File: "ask.go", Run: "TestNodeRegistered",
			Old: "switch err := p.c.o.Nodes.Remove(ctx, n.NodeRef); {",
			New: "switch err := p.c.o.Nodes.Remove(ctx, n.NodeRef); {\ncase errors.Is(err, fs.ErrExist) && n.Name != \"\":\ncontinue"},
		{Name: "an update is not looked for on the Node", File: "../verify.go", Run: "TestUpdateIsVerified",
			Old: "case want.Kubelet != \"\" && n.Versions.Kubelet != want.Kubelet:", New: "case false:"},
	})
}
