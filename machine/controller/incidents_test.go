// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "an instance is requested before its token is stored",
			Package: "..",
			Func:    "(*pass).intend",
			Replace: "p.store(p.making())",
			With:    "Decision{Status: p.s, Action: p.making()}",
			Run:     "TestKilled|TestChaos",
		},
		{
			Why:     "an instance is created before the finalizer is set",
			Package: "..",
			Func:    "(*pass).intend",
			Replace: "!m.Finalizer",
			With:    "false",
			Run:     "TestChaos|TestFrozen",
		},
		{
			Why:     "a Node is deleted before its instance is known to be stopped",
			Package: "..",
			Func:    "(*pass).release",
			Replace: "r.Stopped && !r.NodeGone",
			With:    "!r.NodeGone",
			Run:     "TestTwoMethods",
		},
		{
			Why:     "an instance that was not stopped counts as stopped",
			Package: "..",
			Func:    "(*learner).stopped",
			Replace: "l.o.Progress.Done || l.o.Progress.Stopped",
			With:    "true",
			Run:     "TestKilled|TestChaos",
		},
		{
			Why:     "a control plane node is updated before its backup",
			Package: "..",
			Func:    "(*pass).inPlace",
			Replace: "p.turns() && !u.BackedUp && !u.Sent",
			With:    "p.turns() && !u.BackedUp && u.Done",
			Run:     "TestKilledInEachLife/replaced",
		},
		{
			Why:     "a slot is released because of a cache",
			Func:    "(*pass).free",
			Replace: "p.refresh(ctx)",
			With:    "true, nil",
			Run:     "TestStaleCache",
		},
		{
			Why:     "an irreversible action follows from a cache",
			Func:    "(*pass).settle",
			Replace: "hasEffect(d.Action.Kind) && !p.live && !d.Store",
			With:    "false",
			Run:     "TestPause",
		},
		{
			Why:     "a Node is gone because the cache does not show it",
			Package: "..",
			Func:    "(*pass).removeNode",
			Replace: "p.NodesLive",
			With:    "r != nil",
			Run:     "TestNodeThat",
		},
	})
}
