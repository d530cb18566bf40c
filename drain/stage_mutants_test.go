// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests of the stages would notice: each of these drains is broken in one place.
func TestStageMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a pass outlives its window", File: "evict.go", Run: "TestSlowPassStartsNothing",
			Old: "if !end.IsZero() && end.Before(until) {", New: "if false {"},
		{Name: "an unhealthy pod stops the drain for good", File: "stage.go", Run: "TestUnreadyPodPutsTheDrainOff",
			Old: `p.st.Reason, p.st.Phase, p.st.Outcome = PodUnhealthy, Pending, ""`, New: `p.st.Reason = PodUnhealthy`},
		{Name: "a fleet is frozen until the process dies", File: "release.go", Run: "TestCrashLoopAfterTheRelease",
			Old: "mine.Frozen = why\n\t\tok, err := p.write(ctx, nodeChange{mark: p.mark.with(mine)})", New: "ok, err := true, error(nil)"},
		{Name: "a freeze is seen when the cache shows it", File: "registry.go", Run: "TestFreezeIsSeenBeforeTheCacheShowsIt",
			Old: "all[i] = g.ahead(node, node.Name)", New: "_, _ = i, node"},
		{Name: "the frozen fleet drains on", File: "stage.go", Run: "TestFreezeStopsDrainsUnderWay",
			Old: "frozenBy(p.d.registry.nodes(p.d.o.Cache), p.r.Holder); node != \"\" {\n\t\tp.st.Phase, p.st.Reason", New: "frozenBy(nil, p.r.Holder); node != \"\" {\n\t\tp.st.Phase, p.st.Reason"},
		{Name: "a hold is prolonged", File: "hold.go", Run: "TestHoldSurvives",
			Old: "if !p.now.Before(mine.Until) {", New: "mine.Until = p.r.HoldUntil\n\tif !p.now.Before(mine.Until) {"},
		{Name: "an abandoned hold is taken up again", File: "hold.go", Run: "TestHoldWithoutHeartbeat",
			Old: "if ok, err := p.write(ctx, nodeChange{mark: p.mark.with(mine)}); !ok {\n\t\treturn err\n\t}\n\tp.holdOver", New: "p.holdOver"},
		{Name: "a hold may be as long as it likes", File: "hold.go", Run: "TestHoldOutOfBounds",
			Old: " || p.r.HoldUntil.Sub(p.now) > MaxHold {", New: " {"},
		{Name: "the same word is a sign of life", File: "hooks.go", Run: "TestHookThatIsSilent",
			Old: "if answer.Beat != h.beat || answer.Progress != h.state.Progress {", New: "{"},
		{Name: "an unknown responder counts as one", File: "hooks.go", Run: "TestUnknownResponder",
			Old: "pod.Action, pod.Reason, pod.Message = Block, InvalidBehavior, fmt.Sprintf(\"there is no responder %q\", pod.Hook)",
			New: "pod.Action, pod.Step, pod.Reason, pod.Message = Evict, StepEvict, ReasonNone, \"\""},
		{Name: "a dry run thinks every responder is there", File: "drainer.go", Run: "TestUnknownResponder", Old: "\t\td.unknownHooks(&r.Nodes[i])\n", New: "\t\t_ = i\n"},
		{Name: "a new process takes nothing back", File: "release.go", Run: "TestReleaseTakesHookRequestsBack",
			Old: "	p.namedHooks(*mine)\n	if mine.Released", New: "	if mine.Released"},
		{Name: "the names of responders go with the cordon", File: "release.go", Run: "TestReleaseOpens",
			Old: "if len(p.toRecall()) == 0 {", New: "if len(p.toRecall()) >= 0 {"},
		{Name: "a responder that hangs takes all the time there is", File: "hooks.go", Run: "TestReleaseOpens",
			Old: "context.WithTimeout(ctx, recallTime)", New: "context.WithTimeout(ctx, time.Hour)"},
		{Name: "what rules asked is not taken back", File: "hooks.go", Run: "TestReleaseTakesBackWhatRulesAsked",
			Old: "names := mine.Hooks", New: "var names []string"},
		{Name: "the taint stays", File: "mark.go", Run: "TestOutOfServiceOnlyWithProof",
			Old: "if m.of(name).OutOfService {", New: "if false {"},
		{Name: "no answer is a proof", File: "stage.go", Run: "TestOutOfServiceOnlyWithProof",
			Old: "return off && err == nil", New: "return off || err != nil"},
		{Name: "force is forgotten", File: "settle.go", Run: "TestOutcomes",
			Old: "mine.Forced || mine.OutOfService || len(p.memory.forced) > 0", New: "mine.Forced || mine.OutOfService"},
	})
}

// The same for what comes after the last eviction, and for nodes, events, wakes and sets.
func TestStageMutantsOfTheRest(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a latecomer does not start the settle time again", File: "settle.go", Run: "TestLatecomer",
			Old: "if p.plan.Counts.Remaining > 0 {\n\t\tp.memory.emptySince = time.Time{}\n", New: "if p.plan.Counts.Remaining > 0 {\n"},
		{Name: "the cache is believed", File: "settle.go", Run: "TestDrainedIsConfirmed",
			Old: "if plan.Counts.Remaining == 0 {", New: "if true {"},
		{Name: "volumes have no deadline", File: "settle.go", Run: "TestVolumesAreNotWaitedFor",
			Old: "end := p.memory.emptySince.Add(d)", New: "end := p.memory.emptySince.Add(2 * d)"},
		{Name: "a release believes a late cache", File: "registry.go", Run: "TestReleaseRightAfterTheCordon",
			Old: "return err == nil && order < 0", New: "return err != nil && order < 0"},
		{Name: "a lost answer counts as a failed write", File: "release.go", Run: "TestReleaseRightAfterTheCordon",
			Old: "if p.memory.unsure.Load() {", New: "if false {"},
		{Name: "a node of the same name is the same", File: "pass.go", Run: "TestNodeDeletedAndReplaced",
			Old: "if p.node == nil || (uid != \"\" && p.node.UID != uid) {", New: "if p.node == nil || uid == \"none\" {"},
		{Name: "an uncordoned node is drained", File: "pass.go", Run: "TestUncordon",
			Old: "p.st.Phase, p.st.Reason = Paused, UncordonedByOther\n\tp.st.Message = fmt.Sprintf(\"somebody else has uncordoned node %q: ",
			New: "p.st.Phase, p.st.Reason = Draining, UncordonedByOther\n\tp.st.Message = fmt.Sprintf(\"somebody else has uncordoned node %q: "},
		{Name: "events are told on each pass", File: "report.go", Run: "TestEventsOnlyOnEdges",
			Old: "\t\tp.memory.phase = p.st.Phase\n", New: ""},
		{Name: "conditions are tried once", File: "conditions.go", Run: "TestNodeConditions",
			Old: "if !p.d.o.NodeConditions || there {", New: "if !p.d.o.NodeConditions || there || p.st.Started != p.now {"},
		{Name: "a change during a pass is lost", File: "registry.go", Run: "TestBudgetThatOpensDuringAPass",
			Old: "i.any && c.Budget", New: "false && c.Budget"},
		{Name: "what the scheduler holds back is polled", File: "evict.go", Run: "TestWaitingForTheScheduler",
			Old: "if len(queue) > 0 && !p.d.o.Now().Before(until) {", New: "if len(queue) > 0 {"},
		{Name: "others wait for a slow eviction", File: "evict.go", Run: "TestSlowEvictionHoldsNoOtherBack",
			Old: "case <-slow:\n\t\treturn false", New: "case e := <-map[bool]<-chan eviction{true: answers}[slow != nil]:\n\t\tp.settleAnswer(e)\n\t\treturn true"},
		{Name: "quiet drains look as often as busy ones", File: "settle.go", Run: "TestFallbackWhenNothingChanges",
			Old: "m.quiet+1, p.now", New: "0, p.now"},
		{Name: "evictions outlive a cancelled Run", File: "evict.go", Run: "TestRunCancelledAtAnyInstant",
			Old: "if flying == 0 {", New: "if flying == 0 || ctx.Err() != nil {"},
		{Name: "a cancelled Run leaves the cordon", File: "mark.go", Run: "TestRunCancelledAtAnyInstant",
			Old: "c.unschedulable = &no", New: "_ = no"},
		{Name: "a group does not wait for the one before", File: "admit.go", Run: "TestGroupsStart",
			Old: "case m.group > group:", New: "case false:"},
	})
}
