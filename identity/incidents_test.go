// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "renewTime decides whether a Lease was renewed",
			Func:    "(*tracker).observe",
			Replace: "old.ResourceVersion == lease.ResourceVersion && old.UID == lease.UID",
			With:    `old.Spec.RenewTime != nil && lease.Spec.RenewTime != nil && !lease.Spec.RenewTime.After(old.Spec.RenewTime.Time)`,
			Run:     "^TestClocksOfMembersDoNotMatter$",
		},
		{
			Why:     "a Lease is collected as soon as its member is lost",
			Func:    "due",
			Replace: "p.Quiet >= gcAfter",
			With:    "gcAfter > 0",
			Run:     "^TestNobodyAliveIsCollected$",
		},
		{
			Why:     "the next holder does not wait for the whole liveness",
			Func:    "judge",
			Replace: "s.liveness",
			With:    "s.liveness/2",
			Run:     "^TestNobodyAliveIsCollected$",
		},
		{
			Why:     "a leader takes a Lease by its own Liveness, from a leader that goes on for longer",
			Func:    "NewLeader",
			Replace: "m.waitsForDuration = true",
			With:    "m.waitsForDuration = false",
			Run:     "^TestLeadersOfTwoSettings$",
		},
		{
			Why:     "a hold counts from the answer and not from the request",
			Func:    "(*tenure).answered",
			Replace: "t.lease, t.good, t.retry = r.value, r.sent, retryDelay{}",
			With:    "t.lease, t.good, t.retry = r.value, r.answered, retryDelay{}",
			Run:     "^TestNobodyAliveIsCollected$",
		},
		{
			Why:     "a Lease of a foreign holder is renewed",
			Func:    "(*tenure).found",
			Replace: "holderOf(r.value) != t.epoch.Holder",
			With:    "false",
			Run:     "^TestNobodyAliveIsCollected$",
		},
		{
			Why:     "a blind view stays fresh",
			Func:    "(*freshClock).ends",
			Replace: "c.freshFor",
			With:    "1000*time.Hour",
			Run:     "^TestNobodyIsLostWhileTheViewIsBlind$",
		},
		{
			Why:     "a mass loss is reported at once",
			Func:    "(*tracker).brakes",
			Replace: "losing > 1",
			With:    "losing < 1",
			Run:     "^TestMassLossIsHeldBack$",
		},
		{
			Why:     "the collector deletes by UID alone",
			Func:    "(*Collector).delete",
			Replace: "metav1.Preconditions{UID: &p.Lease.UID, ResourceVersion: &p.Lease.ResourceVersion}",
			With:    "metav1.Preconditions{UID: &p.Lease.UID}",
			Run:     "^TestCollectorLeavesWhatChanges$",
		},
		{
			Why:     "the collector deletes while the view is blind",
			Func:    "(*Collector).inDoubt",
			Replace: "!f.Fresh || f.Held > 0",
			With:    "f.Held > 0",
			Run:     "^TestCollectorWaitsInDoubt$",
		},
	})
}
