// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "the caps of other rollouts do not bind",
			Func:    "(*plan).limit",
			Replace: "slices.Concat(own, p.snapshot.OtherCaps)",
			With:    "slices.Clone(own)",
			Run:     "TestCapsBindAtOnce",
		},
		{
			Why:     "an admitted node does not count against the cap",
			Func:    "(*admission).begin",
			Replace: "u.used++",
			Run:     "TestCapsBindAtOnce|TestSerialNodes",
		},
		{
			Why:     "a list of caps needs no total",
			Func:    "(*plan).capsOf",
			Replace: "!p.policy.bounded()",
			With:    "len(p.policy.Caps) == 0",
			Run:     "TestCapsWithKeys",
		},
		{
			Why:     "half of the serial nodes are a majority",
			Func:    "(*admission).quorum",
			Replace: "after < a.sizes.serial/2+1",
			With:    "after < a.sizes.serial/2",
			Run:     "TestSerialNodes",
		},
		{
			Why:     "unknown health is treated as healthy",
			Func:    "(*plan).untouched",
			Replace: "return deferred, p.unknownHealth()",
			With:    "return waiting, nil",
			Run:     "TestNodeThatIsSick",
		},
		{
			Why:     "a gate without an answer allows",
			Func:    "(*plan).gate",
			Replace: "v.Answer == Allow",
			With:    "v.Answer != Deny",
			Run:     "TestGatesHoldBack|TestStagesArePassed",
		},
		{
			Why:     "a stage completes without a success",
			Func:    "standing.over",
			Replace: "s.done+s.settled >= s.need && (s.done > 0 || s.total == 0)",
			With:    "true",
			Run:     "TestStagesAndNodes|TestFailing|TestRandomRollouts|TestJoined",
		},
		{
			Why:     "a stage completes before its soak",
			Func:    "(*plan).hold",
			Replace: "end.After(p.now)",
			With:    "false",
			Run:     "TestStagesArePassed",
		},
		{
			Why:     "a freeze leaves the ledger open",
			Func:    "(*plan).fence",
			Replace: `f != ""`,
			With:    `f == "?"`,
			Run:     "TestDetectorCloses|TestFailingRevision",
		},
		{
			Why:  "an abort leaves grants open",
			Func: "(*plan).takeBack",
			Replace: `if halt != nil {
		return halt
	}
	if m.group < 0 {
		return &Why{Reason: ReasonLeaving, Message: "the node is not selected any more"}
	}`,
			With: `if  m.group < 0 {
		return &Why{Reason: ReasonLeaving, Message: "the node is not selected any more"}
	}`,
			Run: "TestAbortAtEvery",
		},
		{
			Why:     "the failure of a critical node stops nothing",
			Func:    "(*plan).conclude",
			Replace: "counts && first && e.Critical",
			With:    "false",
			Run:     "TestCritical",
		},
		{
			Why:     "the blast radius exceeds its limit by one",
			Func:    "Blast.Exceeds",
			Replace: "b.Broken <= n",
			With:    "b.Broken <= n+1",
			Run:     "TestBoundAgainstLimit",
		},
		{
			Why:     "nodes in flight are missing from the bound",
			Func:    "StageLoad.blast",
			Replace: "stop.failures-1+inFlight",
			With:    "stop.failures",
			Run:     "TestBoundIsNeverExceeded",
		},
		{
			Why:     "a slot is lent for a node that has one",
			Package: "protocol",
			Func:    "Ledger.Borrow",
			Replace: "s.UID == b.UID || s.Node == b.Node",
			With:    "false",
			Run:     "TestRolloutAndMachineShare",
		},
		{
			Why:     "a late return releases the next loan",
			Package: "protocol",
			Func:    "Ledger.Return",
			Replace: `s != nil && id != "" && s.LoanID() != "" && s.LoanID() != id`,
			With:    "false",
			Run:     "TestSlotsAreGivenBack",
		},
	})
}
