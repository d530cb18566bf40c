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
			Old: "	return p.store(p.making())\n}\n\n// making", New: "	return Decision{Status: p.s, Action: p.making()}\n}\n\n// making"},
		{Name: "the finalizer comes late", File: "../decide.go", Run: "TestChaos|TestFrozen",
			Old: "case !m.Finalizer:\n		return Decision{Status: p.s, Action: Action{Kind: SetFinalizer}}", New: "case false:\n		return Decision{}"},
		{Name: "a Node goes before the proof that its instance is stopped", File: "../release.go", Run: "TestTwoMethods",
			Old: "if r.Stopped && !r.NodeGone {", New: "if !r.NodeGone {"},
		{Name: "what was not stopped counts as stopped", File: "../learn.go", Run: "TestKilled|TestChaos",
			Old: "l.s.Release.Stopped = l.o.Progress.Done || l.o.Progress.Stopped", New: "l.s.Release.Stopped = true"},
		{Name: "the finalizer goes before the instance", File: "../release.go", Run: "TestKilled|TestChaos",
			Old: "case !r.Released:\n		return p.ask(StepReleasing, Action{Kind: Delete, Token: p.s.Token})", New: "case false:\n		return Decision{}"},
		{Name: "a replacement begins before the old instance is released", File: "../release.go", Run: "TestKilled|TestChaos",
			Old: "case !r.Released:\n		return p.ask", New: "case !r.Released && !r.Replace:\n		return p.ask"},
		{Name: "slots are kept", File: "../release.go", Run: "TestKilled|TestChaos",
			Old: "case r.Slot:\n		return p.ask(StepReleasing, Action{Kind: FreeSlot})\n", New: ""},
		{Name: "the end of a machine is not stored before it begins", File: "../release.go", Run: "TestGates",
			Old: "if p.Ungated && !p.Machine.Deleted.IsZero() && len(r.Overrides) == 0 {", New: "if true {"},
		{Name: "a conflict of tokens is for ever", File: "../learn.go", Run: "TestConflict",
			Old: "case class == provider.Conflict && l.a.Kind != Lookup:", New: "case false:"},
		{Name: "a cache is acted on", File: "reconcile.go", Run: "TestPause",
			Old: "if d.Action.Kind != machine.None && !p.live {", New: "if false {"},
		{Name: "a slot of a machine that is gone is kept", File: "reconcile.go", Run: "TestFrozen",
			Old: "if mem.took != nil {", New: "if false {"},
		{Name: "an update is not looked for on the Node", File: "../update.go", Run: "TestUpdateIsVerified",
			Old: "case want.Kubelet != \"\" && n.Versions.Kubelet != want.Kubelet:", New: "case false:"},
	})
}
