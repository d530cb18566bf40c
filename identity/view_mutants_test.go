// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestBrokenViewsAreCaught shows that the tests of the view and the collector can fail where it would be dangerous: R-ID-10, R-ID-12.
func TestBrokenViewsAreCaught(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{
			Name: "a renewal is a later renewTime", File: "view_tracker.go", Run: "^TestClocksOfMembersDoNotMatter$",
			Old: "if old := r.lease; old.ResourceVersion == lease.ResourceVersion && old.UID == lease.UID {",
			New: "if old, at := r.lease, lease.Spec.RenewTime; at == nil || old.Spec.RenewTime != nil && !at.After(old.Spec.RenewTime.Time) {",
		},
		{
			Name: "the view is always fresh", File: "view_fresh.go", Run: "^TestNobodyIsLostWhileTheViewIsBlind$",
			Old: "return c.sent + c.freshFor }", New: "return c.sent + 1000*time.Hour }",
		},
		{
			Name: "no brake", File: "view_tracker.go", Run: "^TestMassLossIsHeldBack$",
			Old: "return losing > 1 && float64(losing)", New: "return losing < 1 && float64(losing)",
		},
		{
			Name: "deletions without preconditions", File: "collector.go", Run: "^TestCollectorLeavesWhatChanges$",
			Old: "Preconditions: &metav1.Preconditions{UID: &p.Lease.UID, ResourceVersion: &p.Lease.ResourceVersion},", New: "",
		},
	})
}

// TestSubtlyBrokenViewsAreCaught is the long table.
func TestSubtlyBrokenViewsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "time on trust is kept", File: "view_fresh.go", Run: "^(TestTimeOnTrustIsTakenBack|TestOutageOfTheServerLosesNobody)$",
			Old: "c.began, c.from, back = c.proven, now, true", New: "c.began, c.from, back = max(c.proven, c.began+c.ends()-c.from), now, true",
		},
		{
			Name: "changes stay ahead of the clock", File: "view_tracker.go", Run: "^FuzzTracker$",
			Old: "r.changed = min(r.changed, latest)", New: "r.changed = max(r.changed, -latest)",
		},
		{
			Name: "what was there is alive", File: "view_tracker.go", Run: "^TestLeaseThatWasThereIsUnconfirmed$",
			Old: "case initial:", New: "case initial && r.lease == nil:",
		},
		{
			Name: "the canary is asked once", File: "view.go", Run: "^TestWatchMayBeFasterThanTheAnswer$",
			Old: "v.echo.again = now + askAgain", New: "v.echo = echo{}",
		},
		{
			Name: "any write to the canary's Lease is a proof", File: "view.go", Run: "^TestForeignWritesToTheCanaryProveNothing$",
			Old: "	case ok:", New: "	case ok || ago >= 0:",
		},
		{
			Name: "a new holder is the old member", File: "view_tracker.go", Run: "^TestHolderThatChangesIsAnotherMember$",
			Old: "case holder != holderOf(old):", New: "case holder == \"\" && holder != holderOf(old):",
		},
		{
			Name: "a new UID is the old member", File: "view_tracker.go", Run: "^TestHolderThatChangesIsAnotherMember$",
			Old: `case holder == "", old.UID != lease.UID:`, New: `case holder == "":`,
		},
		{
			Name: "a deletion of which the end was not seen is none", File: "view.go", Run: "^TestHolderThatChangesIsAnotherMember$",
			Old: "h.v.gone(types.NamespacedName{Namespace: namespace, Name: name})", New: "_, _ = namespace, name",
		},
		{
			Name: "losses do not add up", File: "view_tracker.go", Run: "^TestSecondLossWaitsForTheFirst$",
			Old: "losing := len(t.losses) + t.suspect.n + t.held.n", New: "losing := t.suspect.n + t.held.n",
		},
		{
			Name: "a peer is held for ever", File: "view_config.go", Run: "^TestMassLossIsHeldBack$",
			Old: "c.MassLossHold = 5 * c.Liveness", New: "c.MassLossHold = 500 * c.Liveness",
		},
	})
}

// TestBrokenProofsAreCaught breaks what a loss takes. R-ID-12.
func TestBrokenProofsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "a loss is judged on trust", File: "view_tracker.go", Run: "^FuzzTracker$",
			Old: "t.lose(now, at, sure)...", New: "t.lose(now, at, max(at, sure))...",
		},
		{
			Name: "the unconfirmed are lost on trust", File: "view_tracker.go", Run: "^TestLeaseThatWasThereIsUnconfirmed$",
			Old: "for r, due := t.unconfirmed.due(sure, t.liveness); due; r, due = t.unconfirmed.due(sure, t.liveness) {",
			New: "for r, due := t.unconfirmed.due(at, t.liveness); due; r, due = t.unconfirmed.due(at, t.liveness) {",
		},
		{
			Name: "a write of the canary is settled at once", File: "view_fresh.go", Run: "^FuzzTracker$",
			Old: "	c.seen, c.sent = true, sent\n", New: "	c.settle()\n	c.seen, c.sent = true, sent\n",
		},
		{
			Name: "a write of the canary proves amid a list", File: "view.go", Run: "^TestListProvesNothingAmidIt$",
			Old: "v.settling.begin(v.echo.version)", New: "v.tracker.clock.settle()",
		},
		{
			Name: "what is newer than the canary's write ends the list", File: "view_settle.go", Run: "^TestListProvesNothingAmidIt$",
			Old: "case numbered(version) <= s.upTo:", New: "case numbered(version) <= s.canary:",
		},
		{
			Name: "the Source is not asked again", File: "view_settle.go", Run: "^TestListProvesNothingAmidIt$",
			Old: "	case s.upTo < s.canary: // the", New: "	case false: // the",
		},
		{
			Name: "no list is ever over", File: "view_settle.go", Run: "^TestLossIsToldInTime$",
			Old: "	s.canary = 0\n	return true\n", New: "	return false\n",
		},
		{
			Name: "an edit is a sign of life", File: "view_tracker.go", Run: "^TestEditIsNoSignOfLife$",
			Old: "!was.joined && lives:", New: "!was.joined && (lives || !lives):",
		},
		{
			Name: "no nap is too short", File: "view.go", Run: "^TestEarlyTimerDoesNotSpin$",
			Old: "max(shortNap, next", New: "max(0, next",
		},
		{
			Name: "the gauge stays fresh", File: "view.go", Run: "^TestMetricSaysThatTheViewHasEnded$",
			Old: "	defer v.tellEnd()\n", New: "",
		},
	})
}

// TestBrokenSubscriptionsAreCaught breaks what others see of the view.
func TestBrokenSubscriptionsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "cancel does not wait", File: "view_event.go", Run: "^TestCancelWaitsForTheHandler$",
			Old: "	if done != nil {\n", New: "	if done != nil && len(done) > 0 {\n",
		},
		{
			Name: "a cancelled subscriber gets what was queued", File: "view_event.go", Run: "^TestCancelWaitsForTheHandler$",
			Old: "|| !v.subscribers[s] {", New: "{",
		},
		{
			Name: "Run does not wait for its handlers", File: "view.go", Run: "^TestRunOwnsTheDeliveries$",
			Old: "	v.deliveries.Wait()\n", New: "",
		},
		{
			Name: "an index forgets nothing", File: "view_index.go", Run: "^TestIndexFollowsTheLeases$",
			Old: "if !slices.Contains(are, value) {", New: "if slices.Contains(are, value) && len(were) == 0 {",
		},
	})
}

// TestBrokenCollectorsAreCaught is the table of the collector.
func TestBrokenCollectorsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{
			Name: "deletions by UID alone", File: "collector.go", Run: "^TestCollectorLeavesWhatChanges$",
			Old: ", ResourceVersion: &p.Lease.ResourceVersion},", New: "},",
		},
		{
			Name: "the collector deletes while the view is blind", File: "collector.go", Run: "^TestCollectorWaitsInDoubt$",
			Old: "return !f.Fresh || f.Held > 0", New: "return f.Held > 0",
		},
		{
			Name: "the collector deletes while the brake holds", File: "collector.go", Run: "^TestCollectorWaitsForTheBrake$",
			Old: "return !f.Fresh || f.Held > 0", New: "return !f.Fresh",
		},
		{
			Name: "the collector does not look again", File: "collector.go", Run: "^TestCollectorWaitsInDoubt$",
			Old: "		if c.inDoubt() {\n			return report, nil", New: "		if false {\n			return report, nil",
		},
		{
			Name: "the collector deletes its own Lease", File: "collector_report.go", Run: "^TestOnlyTheLostAreDue$",
			Old: " && p.Key != canary {", New: " {",
		},
		{
			Name: "the collector goes abroad", File: "collector_report.go", Run: "^(TestOnlyTheLostAreDue|TestCollectorStaysAtHome)$",
			Old: " && p.Key.Namespace == canary.Namespace", New: "",
		},
		{
			Name: "the oldest are tried each time", File: "collector_report.go", Run: "^(TestRefusedLeasesStarveNobody|TestBrokenLeaseStopsNoOtherForEver)$",
			Old: "	c.tries[tryOf(p)] = pass\n", New: "	_, _ = p, pass\n",
		},
		{
			Name: "all tries are of one pass", File: "collector_report.go", Run: "^TestRefusedLeasesStarveNobody$",
			Old: "next = max(next, last+1)", New: "next = 1",
		},
		{
			Name: "an epoch that is ahead is forgotten", File: "collector_report.go", Run: "^TestEpochAheadKeepsALease$",
			Old: "(err != nil || version < epoch)", New: "(err != nil || version == 0)",
		},
		{
			Name: "what its finalizers keep is deleted again", File: "collector_report.go", Run: "^TestFinalizerKeepsALease$",
			Old: "if p.Lease.DeletionTimestamp != nil {", New: "if p.Lease.DeletionTimestamp != nil && p.Quiet < 0 {",
		},
	})
}
