// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests would notice a drain that breaks its word about what is on the node: freezes, marks, holds, and what is given back.
func TestReviewMutantsOfTheNode(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a freeze goes with the next cordon", File: "pass.go", Run: "TestFrozenNodeThatIsTakenAgain",
			Old: "= mine.OutOfService, mine.Frozen, mine.extra", New: `= mine.OutOfService, "", mine.extra`},
		{Name: "Resume ends the hold", File: "drainer.go", Run: "TestResumeKeeps",
			Old: "if !h.Released.IsZero() {", New: "{"},
		{Name: "a cordon that lost its mark counts as found", File: "pass.go", Run: "TestCordonWithoutItsMark",
			Old: "before := p.node.Spec.Unschedulable && !p.memory.stray", New: "before := p.node.Spec.Unschedulable"},
		{Name: "a removed mark makes its cordon a found one", File: "pass.go", Run: "TestMarkThatIsRemoved",
			Old: "again, before := p.mark, mine.Unschedulable", New: "again, before := p.mark, p.node.Spec.Unschedulable"},
		{Name: "a release goes by the mark that is left", File: "pass.go", Run: "TestReleaseAfterTheMarkWasRemoved",
			Old: "\t\tp.mark = again\n", New: ""},
		{Name: "a removed entry is entered anew", File: "pass.go", Run: "TestEntryIsWrittenAgainAsItWas",
			Old: "again = again.with(mine.Holders[0])", New: "again = again.with(holder{Holder: p.r.Holder, Maintenance: p.r.Maintenance, Mode: p.r.Mode, Since: p.now, Until: p.r.HoldUntil})"},
		{Name: "what was known of the Node before counts", File: "pass.go", Run: "TestNodeThatCameUnderTheName",
			Old: "p.memory.mine, p.memory.stray = nil, false", New: ""},
		{Name: "one holder's question is another's", File: "hold.go", Run: "TestTwoHoldsAskForTheHeartbeat",
			Old: "question{\"heartbeat\", p.r.Holder, p.node.UID}", New: "question{\"heartbeat\", \"\", p.node.UID}"},
		{Name: "a cordon of others is taken for an old one", File: "pass.go", Run: "TestCordonAfterARelease",
			Old: "if p.mark.of(p.r.Holder) != nil || !p.node.Spec.Unschedulable {", New: "if p.mark.of(p.r.Holder) != nil {"},
		{Name: "unknown fields are dropped", File: "mark.go", Run: "TestUnknownFields",
			Old: "append(holders, h), extra: m.extra}", New: "append(holders, h)}"},
		{Name: "a hold is said before the Lease is renewed", File: "hold.go", Run: "TestHoldIsNotSaid",
			Old: "if !p.memory.renewed.IsZero() {", New: "{"},
		{Name: "a hold waits for the passes of others", File: "registry.go", Run: "TestHoldIsNotDelayed",
			Old: "if err != nil || r.Mode == Hold {", New: "if err != nil {"},
		{Name: "the last answer is the newest", File: "registry.go", Run: "TestLateAnswerDoesNotHide",
			Old: "w == nil || !behind(node, w) {", New: "w == nil || node != nil {"},
		{Name: "a heartbeat may hang", File: "question.go", Run: "TestHeartbeatThatHangs",
			Old: "ctx, cancel := context.WithTimeout(ctx, askTime)", New: "ctx, cancel := context.WithCancel(ctx)"},
		{Name: "calls that do not return pile up", File: "question.go", Run: "TestHeartbeatThatHeedsNoContext",
			Old: "if g.asked[q] {", New: "if false {"},
		{Name: "a cancelled Run releases what it has not taken", File: "run.go", Run: "TestCancelledRunLeaves",
			Old: "return d.begun(name, r), nil", New: "return true, nil"},
		{Name: "a cancelled Run believes its cache", File: "registry.go", Run: "TestCancelledRunReleasesWhatItsCache",
			Old: "return m == nil || m.maintenance != maintenance || m.unsure.Load()", New: "return m != nil && m.maintenance == maintenance && m.unsure.Load()"},
		{Name: "who is forgotten stays in the sum", File: "forget.go", Run: "TestForgetTakes", Old: "f != nil && counted != \"\" {", New: "f != nil && false && counted != \"\" {"},
		{Name: "one holder's end is that of all", File: "forget.go", Run: "TestForgetTakes", Old: "if k.holder == holder {", New: "if holder != \"\" {"},
		{Name: "who is forgotten is remembered", File: "forget.go", Run: "TestForgetTakes", Old: "\tg.drop(k)\n", New: ""},
		{Name: "the drain before is counted for ever", File: "registry.go", Run: "TestForgetTakes", Old: "m.counted = before.counted", New: "_ = before.counted"},
		{Name: "a pass is forgotten under way", File: "forget.go", Run: "TestForgetWaits",
			Old: "d.registry.lock(ctx, k)", New: "d.registry.lock(ctx, key{node: k.node + \"?\"})"},
		{Name: "a new process believes its cache", File: "memory.go", Run: "TestReleaseByANewProcess",
			Old: "m.unsure.Store(true)", New: ""},
	})
}

// The same for bounds and times.
func TestReviewMutantsOfTheLimits(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the settle time goes on over a hold", File: "pass.go", Run: "TestSettleTimeStartsAgainAfterAHold",
			Old: "p.memory.emptySince, p.memory.renewed = time.Time{}, time.Time{}", New: "p.memory.renewed = time.Time{}"},
		{Name: "a rule can't say Evict", File: "podplan.go", Run: "TestRuleThatSays",
			Old: "reason != ReasonNone && w.behavior.kind != BehaviorEvict {", New: "reason != ReasonNone {"},
		{Name: "a lost cordon is fought for", File: "pass.go", Run: "TestRecordonDoesNotFight",
			Old: "p.now.Add(fallback(p.memory.recordons))", New: "p.now.Add(fallback(0))"},
		{Name: "each turn of a fight is told", File: "report.go", Run: "TestRecordonDoesNotFight",
			Old: "if !p.contested() {", New: "{"},
		{Name: "a paused drain has no deadline", File: "stage.go", Run: "TestDeadlineIsReported",
			Old: "p.ask(lastFallback)\n\t\tp.pastDeadline()", New: "p.ask(lastFallback)"},
		{Name: "hooks of a closed window are asked back once", File: "stage.go", Run: "TestWindowThatClosesTries",
			Old: "hooks := p.recall(ctx)\n\t\tif hooks != nil {", New: "hooks := error(nil)\n\t\tif hooks != nil {"},
		{Name: "MaxNodes believes a late cache", File: "admit.go", Run: "TestMaxNodesHolds",
			Old: "func (d *Drainer) begun(name string, r Request) bool {\n\tnode := d.registry.newest(d.o.Cache, name)",
			New: "func (d *Drainer) begun(name string, r Request) bool {\n\tnode := d.o.Cache.Node(name)"},
		{Name: "dips are not noticed", File: "sched_budget.go", Run: "TestBudgetThatDipsIsNotBlocked",
			Old: "\tb.dips(seen, now)\n", New: ""},
		{Name: "durations are numbers in JSON", File: "policyjson.go", Run: "TestPolicyInJSON",
			Old: "{ return json.Marshal(p.json()) }", New: "{ return json.Marshal(plainPolicy(p)) }"},
		{Name: "copies share what the policy lists", File: "deepcopy.go", Run: "TestCopiesShare",
			Old: "\tout.Windows = slices.Clone(p.Windows)\n", New: ""},
		{Name: "MaxNodes forgets what it has tried", File: "admit.go", Run: "TestMaxNodesCounts",
			Old: " || d.begun(name, s.Request) || d.doubtful(name, s.Request)", New: " || d.begun(name, s.Request)"},
		{Name: "a doubtful place is kept for ever", File: "release.go", Run: "TestPlaceOfANode",
			Old: "p.memory.doubt.Store(false)", New: ""},
		{Name: "pods that come late have come back", File: "returns.go", Run: "TestPodsThatComeLate", Old: " && !made.Before(d.since) {", New: " {"},
		{Name: "who went unseen lets all come back", File: "returns.go", Run: "TestPodsThatComeLate", Old: "since: sent.Truncate(time.Second)", New: "since: p.CreationTimestamp.Time"},
		{Name: "a deletion that is seen counts for nothing", File: "returns.go", Run: "TestPodsThatHaveComeBack", Old: "if !d.seen || deleted.Before(d.since) {", New: "if false {"},
		{Name: "a shortened time is another deletion", File: "returns.go", Run: "TestPodsThatHaveComeBack", Old: "if !d.seen || deleted.Before(d.since) {", New: "{"},
		{Name: "who is there has gone", File: "returns.go", Run: "TestPodsThatHaveComeBack", Old: "d.there = p.DeletionTimestamp == nil\n", New: ""},
		{Name: "who was there is there for ever", File: "returns.go", Run: "TestPodsThatHaveComeBack", Old: "d.there = false", New: "_ = d.there"},
		{Name: "an eviction that came to nothing counts", File: "returns.go", Run: "TestPodsThatAreEvictedAgain", Old: "d != nil && d.seen {", New: "d != nil {"},
		{Name: "a lost answer hides who comes back", File: "memory.go", Run: "TestLostAnswersDoNotHide", Old: "ref: ref, at: now}\n\t\t\tm.returns.evicted(pod, sent)", New: "ref: ref, at: now}"},
		{Name: "who comes to an open node comes back", File: "returns.go", Run: "TestWhatComesToAnOpenNode", Old: "if owner != nil && !open {", New: "if owner != nil {"},
		{Name: "who came to an open node comes back", File: "pass.go", Run: "TestWhatComesOutside", Old: "p.memory.returns.look(p.d.o.Cache.Pods(p.node.Name), true)", New: ""},
		{Name: "each owner's pods come back for all", File: "returns.go", Run: "TestPodsOfOthers", Old: "d.owner == owner && !d.there", New: "!d.there"},
		{Name: "two at once are one after the other", File: "returns.go", Run: "TestPodsThatComeBackTogether", Old: "max(r.most[owner.UID], turn)", New: "r.most[owner.UID] + turn"},
		{Name: "each comes back for the first time", File: "returns.go", Run: "TestPodsThatAreMadeAfterwards", Old: "turn: r.turns[p.UID], ", New: ""},
		{Name: "no answer is overload", File: "plan_attempt.go", Run: "TestServerWithout",
			Old: "return Wait, NoAnswer,", New: "return Wait, ServerOverloaded,"},
	})
}
